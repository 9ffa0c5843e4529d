/** What a learner step minimizes: the name of a loss (`engine/learner/losses`) and its constants. */
export type Objective = { kind: 'supervised' } | GrpoObjective;

/** What log-probs are of: the softmax of the logits over their temperature, among `topK` tokens at most, 0: among all. */
export interface OfSamples {
  temperature: number;
  topK: number;
}

export type Aggregation = 'token' | 'sequence' | 'dr-grpo';

/** The mean over tokens that a loss is. */
export interface MeanOf {
  /** `token`: DAPO's mean. `sequence`: GRPO's. `dr-grpo`: with the constant denominator of Dr. GRPO. */
  aggregation: Aggregation;
  /** What an episode may have after its prompt, in tokens: the constant denominator of `dr-grpo`. */
  maxCompletionTokens: number;
}

export interface GrpoObjective extends OfSamples, MeanOf {
  kind: 'grpo';
  clipRatioLow: number;
  clipRatioHigh: number;
  /** Weight of the K3 KL to the reference; 0 leaves it out. */
  beta: number;
  /** Caps the truncated importance weight between learner and rollout log-probs; 0 leaves it out. */
  importanceCap: number;
}
