import { GradusError } from '../../../core/errors.ts';
import { weightShapes, type ModelConfig, type Weights } from '../../../core/model/config.ts';
import { DEFAULT_COMPUTE } from '../contract.ts';
import type {
  CriticSettings,
  CriticState,
  SamplingMask,
  ScoredBatch,
  Teacher,
  TrainBatch,
  TrainSettings,
  TrainState,
} from '../contract.ts';
import { criticShapes } from '../critic.ts';
import { lossOf } from '../losses/index.ts';
import { problemOfLabels } from '../losses/reward-model.ts';
import type { Loss } from '../losses/loss.ts';
import { parameterShapes } from '../../lora/adapter-shapes.ts';

const wrong = (type: string, message: string) => new GradusError('learner', type, message);

/** Throws GradusError('learner', 'batch') when a batch is malformed, lacks what a step needs or does not fit the model. */
export function checkBatch(
  batch: TrainBatch,
  config: ModelConfig,
  loss: Loss | null,
  critic: CriticSettings | undefined,
): void {
  const { streams, sequences, offsets } = batch;
  const ofCritic = critic ? (['returns', ...(critic.clip > 0 ? (['values'] as const) : [])] as const) : [];
  const lacking =
    [...(loss?.needs ?? []), ...ofCritic].find((name) => !streams[name]) ??
    loss?.needsOfSequences?.find((name) => !sequences[name]);
  if (lacking) throw wrong('batch', `it lacks the stream ${lacking}, which this step reads`);
  checkSequences(batch, config, loss?.from.topK ?? 0);
  checkNumbers(streams, batch.tokens.length, 'tokens');
  checkNumbers(sequences, offsets.length - 1, 'sequences');
  checkUpdates(batch.updates, offsets.length - 1);
  const problem = loss?.problemOf?.(batch) ?? (critic?.loss && problemOfLabels(critic.loss, batch));
  if (problem) throw wrong('batch', problem);
}

/** Throws GradusError('learner', 'batch') when sequences are malformed or do not fit the model. */
export function checkSequences(batch: ScoredBatch, config: ModelConfig, topK: number): void {
  const { tokens, offsets, mask } = batch;
  const total = tokens.length;
  checkNumbers({ mask }, total, 'tokens');
  if (offsets.length < 2 || offsets[0] !== 0 || offsets.at(-1) !== total) {
    throw wrong('batch', `offsets must start with 0 and end with the number of tokens, ${total}`);
  }
  for (let i = 0; i + 1 < offsets.length; i++) {
    const start = offsets[i]!;
    const length = offsets[i + 1]! - start;
    if (length < 1) throw wrong('batch', `sequence ${i} has ${length} tokens`);
    if (length > config.maxPositions) {
      throw wrong(
        'batch',
        `sequence ${i} has ${length} tokens and the model takes ${config.maxPositions}: shorten the episodes or raise maxPositions`,
      );
    }
    if (mask[start] !== 0) {
      throw wrong('batch', `mask[${start}] counts the first token of sequence ${i}, which nothing predicts`);
    }
  }
  const unknown = tokens.findIndex((token) => token < 0 || token >= config.vocabSize);
  if (unknown >= 0) {
    throw wrong(
      'batch',
      `tokens[${unknown}] is ${tokens[unknown]} and the model knows 0 to ${config.vocabSize - 1}: use the tokenizer of this model`,
    );
  }
  const masked = config.maskedTokens ?? [];
  const rowOnly = tokens.findIndex((token) => masked.some(([from, to]) => from <= token && token < to));
  if (rowOnly >= 0) {
    throw wrong(
      'batch',
      `tokens[${rowOnly}] is ${tokens[rowOnly]}, which the tokenizer of this model lacks: learn from what was sampled with this tokenizer`,
    );
  }
  const odd = mask.findIndex((value) => value !== 0 && value !== 1);
  if (odd >= 0) throw wrong('batch', `mask[${odd}] is ${mask[odd]}: it must be 0 or 1`);
  if (!mask.includes(1))
    throw wrong('batch', 'no token of the batch is masked in: there is nothing to learn');
  if (batch.kept) checkSamplingMask(batch, batch.kept, config, topK);
}

function checkNumbers(arrays: Record<string, Float32Array>, count: number, what: string): void {
  for (const [name, values] of Object.entries(arrays)) {
    if (values.length !== count)
      throw wrong('batch', `${name} has ${values.length} entries for ${count} ${what}`);
    const bad = values.findIndex((value) => !Number.isFinite(value));
    if (bad >= 0)
      throw wrong('batch', `${name}[${bad}] is ${values[bad]}: every entry must be a finite number`);
  }
}

function checkUpdates(updates: readonly Int32Array[], sequences: number): void {
  if (updates.length === 0) throw wrong('batch', 'it has no updates: there is nothing to do');
  updates.forEach((update, u) => {
    const known = update.every((sequence) => sequence >= 0 && sequence < sequences);
    if (update.length === 0 || !known || new Set(update).size < update.length) {
      throw wrong(
        'batch',
        `update ${u + 1} has the sequences [${update.slice(0, 8).join()}${update.length > 8 ? ',…' : ''}]: give one or more from 0 to ${sequences - 1}, each once`,
      );
    }
  });
}

/** A token that it was not sampled among, or a set that does not fit, would be learnt from as something else. */
function checkSamplingMask(
  { tokens }: ScoredBatch,
  { ids, offsets }: SamplingMask,
  config: ModelConfig,
  topK: number,
): void {
  const fits = offsets.length === tokens.length + 1 && offsets[0] === 0 && offsets.at(-1) === ids.length;
  if (!fits) throw wrong('batch', `kept has ${offsets.length - 1} sets for ${tokens.length} tokens`);
  tokens.forEach((token, i) => {
    const set = ids.subarray(offsets[i], offsets[i + 1]);
    if (set.length === 0) return;
    const known = set.every((id, at) => id < config.vocabSize && id > (at === 0 ? -1 : set[at - 1]!));
    // What a cut left does not matter to who reads the whole distribution, or none.
    const tooMany = topK > 0 && set.length > topK;
    if (!known || tooMany || !set.includes(token)) {
      throw wrong(
        'batch',
        `tokens[${i}] is ${token}, sampled among [${set.slice(0, 8).join()}${set.length > 8 ? ',…' : ''}]: give ascending ids of the model, ${topK > 0 ? `${topK} at most, ` : ''}with the token among them`,
      );
    }
  });
}

/** Throws GradusError('learner', 'settings'). `reference`: whether its weights or its log-probs are given. */
export function checkSettings(
  { objective, critic, compute = DEFAULT_COMPUTE }: TrainSettings,
  reference: boolean,
  teachers: readonly Teacher[],
  config: ModelConfig,
): void {
  if (!objective && !critic)
    throw wrong('settings', 'there is neither an objective nor a critic: there is nothing to train');
  if (critic && !(critic.clip >= 0))
    throw wrong('settings', `critic.clip is ${critic.clip}: give 0 or more units of reward`);
  if (critic?.loss && critic.clip > 0)
    throw wrong('settings', `critic.clip is ${critic.clip}: a reward model has no clip, so give 0`);
  const { microBatchTokens } = compute;
  if (!Number.isInteger(microBatchTokens) || microBatchTokens < 0) {
    throw wrong('settings', `microBatchTokens is ${microBatchTokens}: give a number of tokens, or 0`);
  }
  if (!objective) return;
  const loss = lossOf(objective);
  checkTemperature(loss.from.temperature);
  if (loss.reads(true).includes('reference') && !reference) {
    throw wrong(
      'settings',
      `the objective ${objective.kind} reads a reference as it is set: give its weights, or its log-probs with the batch`,
    );
  }
  if (objective.kind === 'distill') checkTeachers(objective.teacherWeights, teachers, config);
}

/** Throws GradusError('learner', 'settings'). */
export function checkTemperature(temperature: number): void {
  if (temperature > 0) return;
  throw wrong('settings', `temperature is ${temperature}: log-probs need one above 0`);
}

function checkTeachers(shares: readonly number[], teachers: readonly Teacher[], config: ModelConfig): void {
  const sum = shares.reduce((total, share) => total + share, 0);
  if (shares.length !== teachers.length || shares.length === 0)
    throw wrong('settings', `${shares.length} teachers have a weight and ${teachers.length} are given`);
  if (shares.some((share) => !(share >= 0)) || Math.abs(sum - 1) > 1e-6)
    throw wrong('settings', `the teachers' weights are [${shares.join(', ')}]: give shares that sum to 1`);
  const vocabulary = ({ vocabSize, maskedTokens }: ModelConfig) => JSON.stringify([vocabSize, maskedTokens]);
  const other = teachers.findIndex((teacher) => vocabulary(teacher.config) !== vocabulary(config));
  if (other >= 0)
    throw wrong(
      'settings',
      `teacher ${other} has ${teachers[other]!.config.vocabSize} tokens, the policy ${config.vocabSize}: a divergence needs one vocabulary`,
    );
  teachers.forEach((teacher, i) => checkWeights(teacher.weights, teacher.config, `teacher ${i}`));
}

/** Throws GradusError('learner', 'weights') when weights do not have the shapes that the configuration says. */
export const checkWeights = (weights: Weights, config: ModelConfig, what: string): void =>
  checkShapes(weights, weightShapes(config), what);

function checkShapes(weights: Weights, shapes: [name: string, shape: number[]][], what: string): void {
  for (const [name, shape] of shapes) {
    const tensor = weights.get(name);
    if (!tensor) throw wrong('weights', `${what} lacks ${name}`);
    const size = shape.reduce((product, extent) => product * extent, 1);
    if (tensor.shape.join() !== shape.join() || tensor.data.length !== size) {
      throw wrong(
        'weights',
        `${what}: ${name} is [${tensor.shape.join()}] and the configuration says [${shape.join()}]`,
      );
    }
  }
}

/** Throws GradusError('learner', 'weights') where weights, adapter, critic or moments do not have their shapes. */
export function checkState({
  config,
  weights,
  adapter,
  firstMoments,
  secondMoments,
  critic,
}: TrainState): void {
  const { trained } = parameterShapes({ config, lora: adapter?.lora });
  checkWeights(weights, config, 'weights');
  if (adapter) checkShapes(adapter.weights, trained, 'adapter');
  if (firstMoments.size > 0) checkShapes(firstMoments, trained, 'first moments');
  if (secondMoments.size > 0) checkShapes(secondMoments, trained, 'second moments');
  if (critic) checkCritic(critic, config);
}

/** Likewise, of a critic alone. */
export function checkCritic(
  { weights, firstMoments, secondMoments }: CriticState,
  config: ModelConfig,
): void {
  const shapes = criticShapes(config);
  checkShapes(weights, shapes, 'critic');
  if (firstMoments.size > 0) checkShapes(firstMoments, shapes, 'first moments of the critic');
  if (secondMoments.size > 0) checkShapes(secondMoments, shapes, 'second moments of the critic');
}
