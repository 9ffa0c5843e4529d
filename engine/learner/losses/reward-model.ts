import type { RewardModelLoss } from '../../../core/requests/learner.ts';
import type { TrainBatch } from '../contract.ts';
import { logSigmoid, sigmoid } from './sigmoid.ts';

/** Of an update of a reward model, before it. */
export interface RewardModelResult {
  loss: number;
  /** ∂loss/∂value of each token [total]; 0 where nothing counts. */
  slopes: Float32Array;
  /** Labels, or pairs, that there are, and those on the right side. */
  compared: number;
  right: number;
}

/**
 * Of a reward model, whose values V are logits, to be minimized; a mean over what is compared.
 *
 * `cross-entropy`: −y log σ(V) − (1 − y) log(1 − σ(V)) at every masked token, y = `returns` in [0, 1] (Cobbe et al. 2021,
 * arXiv 2110.14168; Lightman et al. 2023, arXiv 2305.20050, where y is of a step).
 *
 * `bradley-terry`: −log σ(V⁺ − V⁻) of every pair, V of the one masked token of each (Ouyang et al. 2022, arXiv 2203.02155,
 * eq. 1): `pair` has the number of the pair, `label` 1 for the preferred one and −1 for the other.
 *
 * As with other losses of whole sequences, it is arithmetic on what the network says, and the gradient of Σ slope · V is its own.
 */
export function rewardModelLoss(
  kind: RewardModelLoss,
  batch: Pick<TrainBatch, 'offsets' | 'mask' | 'streams' | 'sequences'>,
  minibatch: readonly number[],
  values: Float32Array,
): RewardModelResult {
  return kind === 'cross-entropy'
    ? crossEntropy(batch, minibatch, values)
    : bradleyTerry(batch, minibatch, values);
}

type Labelled = Parameters<typeof rewardModelLoss>[1];

function crossEntropy(
  batch: Labelled,
  minibatch: readonly number[],
  values: Float32Array,
): RewardModelResult {
  const labels = batch.streams.returns!;
  const counted = minibatch.flatMap((sequence) => countedIn(batch, sequence));
  const slopes = new Float32Array(values.length);
  let [loss, right] = [0, 0];
  for (const at of counted) {
    const [value, label] = [values[at]!, labels[at]!];
    loss += (-logSigmoid(-value) - label * value) / counted.length;
    slopes[at] = (sigmoid(value) - label) / counted.length;
    if (value > 0 === label > 0.5) right++;
  }
  return { loss, slopes, compared: counted.length, right };
}

function bradleyTerry(
  batch: Labelled,
  minibatch: readonly number[],
  values: Float32Array,
): RewardModelResult {
  const pairs = new Map<number, { preferred?: number; other?: number }>();
  for (const sequence of minibatch) {
    const pair = batch.sequences.pair![sequence]!;
    const [at] = countedIn(batch, sequence);
    const half = batch.sequences.label![sequence] === 1 ? { preferred: at! } : { other: at! };
    pairs.set(pair, { ...pairs.get(pair), ...half });
  }
  const slopes = new Float32Array(values.length);
  let [loss, right] = [0, 0];
  for (const { preferred, other } of pairs.values()) {
    const margin = values[preferred!]! - values[other!]!;
    loss -= logSigmoid(margin) / pairs.size;
    slopes[preferred!] = -sigmoid(-margin) / pairs.size;
    slopes[other!] = sigmoid(-margin) / pairs.size;
    if (margin > 0) right++;
  }
  return { loss, slopes, compared: pairs.size, right };
}

/** Why a batch has nothing that this loss could compare, or undefined. */
export function problemOfLabels(
  kind: RewardModelLoss,
  batch: Labelled & Pick<TrainBatch, 'updates'>,
): string | undefined {
  if (kind === 'cross-entropy') {
    const odd = batch.streams.returns!.findIndex(
      (label, at) => batch.mask[at] === 1 && !(label >= 0 && label <= 1),
    );
    return odd < 0
      ? undefined
      : `returns[${odd}] is ${batch.streams.returns![odd]}: cross-entropy takes labels in [0, 1]`;
  }
  const { pair, label } = batch.sequences;
  if (!pair || !label) return 'it lacks pair or label of its sequences, which bradley-terry reads';
  for (const update of batch.updates) {
    const sums = new Map<number, number[]>();
    for (const sequence of update) {
      const { length } = countedIn(batch, sequence);
      if (length !== 1)
        return `sequence ${sequence} has ${length} masked tokens: bradley-terry compares one of each`;
      sums.set(pair[sequence]!, [...(sums.get(pair[sequence]!) ?? []), label[sequence]!]);
    }
    for (const [number, labels] of sums)
      if (labels.length !== 2 || labels[0]! + labels[1]! !== 0 || labels[0] === 0)
        return `pair ${number} has the labels [${labels.join()}] in an update: give 1 and −1`;
  }
  return undefined;
}

function countedIn({ offsets, mask }: Labelled, sequence: number): number[] {
  const places: number[] = [];
  for (let at = offsets[sequence]!; at < offsets[sequence + 1]!; at++) if (mask[at] === 1) places.push(at);
  return places;
}
