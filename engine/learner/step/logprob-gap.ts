import { GradusError } from '../../../core/errors.ts';
import type { GapBin, LearnerMetrics, StalenessGap } from '../../../core/requests/learner.ts';
import type { TrainBatch } from '../contract.ts';
import { sampledSpan } from '../batch/sequences.ts';

type Gap = Pick<
  LearnerMetrics,
  'logprobGapMax' | 'logprobGapMean' | 'logprobGapByPosition' | 'logprobGapByLength'
>;

/** The first bin ends here, and each other one at twice where it begins. */
const FIRST_BIN = 64;

/**
 * How far the learner's log-probs [T] are from those that the sampler gave, nats, over the tokens that these sequences
 * count: in all, by their position behind the first one of their sequence that counts, and by how many positions there are
 * from the first to the last. Engines that round differently are apart alike everywhere. A position encoding that is
 * scaled differently, or a cache that was filled by other weights, is not. `isOf` leaves tokens out.
 */
export function logprobGap(
  batch: Pick<TrainBatch, 'offsets' | 'mask' | 'streams'>,
  sequences: readonly number[],
  logprobs: Float32Array,
  isOf: (token: number) => boolean = () => true,
): Gap {
  const { samplerLogprobs } = batch.streams;
  const [byPosition, byLength] = [new Bins(), new Bins()];
  let [max, sum, tokens] = [0, 0, 0];
  for (const sequence of samplerLogprobs ? sequences : []) {
    const { first, end } = sampledSpan(batch, sequence);
    for (let i = first; i < end; i++) {
      if (batch.mask[i] !== 1 || !isOf(i)) continue;
      const gap = Math.abs(logprobs[i]! - samplerLogprobs![i]!);
      max = Math.max(max, gap);
      sum += gap;
      tokens++;
      byPosition.add(i - first, gap);
      byLength.add(end - first, gap);
    }
  }
  if (tokens === 0) return { logprobGapMax: null, logprobGapMean: null };
  return {
    logprobGapMax: max,
    logprobGapMean: sum / tokens,
    logprobGapByPosition: byPosition.all(),
    logprobGapByLength: byLength.all(),
  };
}

type MarkedBatch = Pick<TrainBatch, 'offsets' | 'mask' | 'streams' | 'sequences'>;

/** The same of what the weights have sampled that the step starts from. */
export function ownGap(batch: MarkedBatch, sequences: readonly number[], logprobs: Float32Array): Gap {
  const { staleness } = batch.streams;
  if (staleness) return logprobGap(batch, sequences, logprobs, (token) => staleness[token] === 0);
  const own = sequences.filter((sequence) => batch.sequences.late?.[sequence] !== 1);
  return logprobGap(batch, own, logprobs);
}

/**
 * The mean of the same by how stale tokens are, those of late sequences included: nothing of those of which the batch does
 * not say it.
 */
export function gapByStaleness(
  batch: MarkedBatch,
  sequences: readonly number[],
  logprobs: Float32Array,
): Pick<LearnerMetrics, 'logprobGapByStaleness'> {
  const ages = batch.streams.staleness ?? perToken(batch, batch.sequences.staleness);
  const known = [...new Set(ages)].filter((age) => age >= 0).toSorted((a, b) => a - b);
  const found = known.flatMap((age): StalenessGap[] => {
    const { logprobGapMean: mean, logprobGapByPosition: bins = [] } = logprobGap(
      batch,
      sequences,
      logprobs,
      (token) => ages[token] === age,
    );
    if (mean === null) return [];
    return [{ staleness: age, tokens: bins.reduce((sum, { tokens }) => sum + tokens, 0), mean }];
  });
  return found.length === 0 ? {} : { logprobGapByStaleness: found };
}

/** What is said of sequences, of each of their tokens; −1 where nothing is said. */
function perToken({ offsets, mask }: MarkedBatch, marks: Float32Array | undefined): Float32Array {
  const all = new Float32Array(mask.length).fill(-1);
  marks?.forEach((mark, sequence) => all.fill(mark, offsets[sequence], offsets[sequence + 1]));
  return all;
}

/** Before anything is updated: what was sampled by other weights than these would be learnt as if it were theirs. */
export function refuseGap(mean: number | null, most: number | undefined): void {
  if (mean === null || most === undefined || mean <= most) return;
  throw new GradusError(
    'learner',
    'logprob-gap',
    `the log-probs of what was sampled are ${mean.toPrecision(3)} nats a token from the learner's, with a bound of ${most}: nothing was trained on it`,
  );
}

/** Means by bins that double: 0 to 63, 64 to 127, 128 to 255, … */
class Bins {
  private readonly sums: number[] = [];
  private readonly counts: number[] = [];

  add(at: number, value: number): void {
    const bin = at < FIRST_BIN ? 0 : 1 + Math.floor(Math.log2(at / FIRST_BIN));
    this.sums[bin] = (this.sums[bin] ?? 0) + value;
    this.counts[bin] = (this.counts[bin] ?? 0) + 1;
  }

  /** Those that have a token. */
  all(): GapBin[] {
    return this.counts.flatMap((tokens, bin) => {
      const from = bin === 0 ? 0 : FIRST_BIN * 2 ** (bin - 1);
      return [{ from, tokens, mean: this.sums[bin]! / tokens }];
    });
  }
}
