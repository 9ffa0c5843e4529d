/** One sequence on its way into a batch; all arrays have the same length. */
export interface TrainSequence {
  tokens: number[];
  mask: number[];
  /** What is said of each token; all sequences of a batch have the same streams. */
  streams: Partial<Record<'advantages' | 'samplerLogprobs' | 'reference' | 'values' | 'returns', number[]>>;
  /** Ids that each token was sampled among; empty where nothing was cut. Absent: nowhere. */
  kept?: number[][];
  /** Was sampled by an earlier policy than the one that learns from it. */
  late?: true;
  /** Sequences of one number are the two of a preference, and stay in one update. */
  pair?: number;
  /** 1: preferred, or desirable; −1: the other; 0: neither. */
  label?: 1 | -1 | 0;
  /** The number of the teacher that it follows; absent: all of them by weight. */
  teacher?: number;
}
