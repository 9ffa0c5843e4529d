import type { Tensor } from '@tensorflow/tfjs';
import { GradusError } from '../../../core/errors.ts';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import { DEFAULT_COMPUTE } from '../contract.ts';
import type {
  ComputeSettings,
  SamplingMask,
  TrainBatch,
  TrainMetrics,
  TrainSettings,
  TrainState,
} from '../contract.ts';
import type { DeviceState } from './device-state.ts';
import { distillationProgram } from '../programs/distillation-program.ts';
import { lossOf } from '../losses/index.ts';
import { linearLoss } from '../losses/linear.ts';
import type { CoupledResult, TokenInput } from '../losses/loss.ts';
import { createMicroBatches, dispose } from '../batch/micro-batches.ts';
import type { ModelConfig } from '../../../core/model/config.ts';
import { descend } from '../optimizer/descend.ts';
import { logprobProgram, trainingProgram } from '../programs/policy-programs.ts';
import { effectiveSamples } from './effective-samples.ts';
import { gapByStaleness, ownGap, refuseGap } from './logprob-gap.ts';
import { refuseNonFinite } from './refuse-non-finite.ts';
import { packing } from '../batch/row-packing.ts';
import type { Runner } from '../tensorflow/runner.ts';
import { lengthOf, maskOf, movesWeights, sequencesOf } from '../batch/sequences.ts';
import type { NetworkUpdates } from './train-step.ts';

export interface StepContext {
  backend: TensorflowBackend;
  runner: Runner;
  parent: TrainState;
  batch: TrainBatch;
  compute: ComputeSettings | undefined;
  /** Hears of every micro-batch. */
  advance: () => void;
}

/** Other models, on the device. */
export interface PolicyInputs {
  reference: Tensor[] | undefined;
  teachers: { config: ModelConfig; tensors: Tensor[] }[];
}

type PolicyMetrics = Omit<TrainMetrics, 'updates' | 'seconds' | 'critic'>;

/** Of a step that trains the critic alone. */
export const NO_POLICY: Omit<PolicyMetrics, 'tokens'> = {
  loss: null,
  gradientNorm: null,
  gradientMomentumCosine: null,
  entropy: null,
  kl: null,
  clipFraction: null,
  logprobGapMax: null,
  logprobGapMean: null,
};

export function policyUpdates(
  { backend, runner, parent, batch, compute = DEFAULT_COMPUTE, advance }: StepContext,
  {
    objective,
    optimizer,
    maxLogprobGap,
  }: { objective: NonNullable<TrainSettings['objective']> } & Pick<
    TrainSettings,
    'optimizer' | 'maxLogprobGap'
  >,
  { frozen, adam }: DeviceState,
  { reference, teachers }: PolicyInputs,
): NetworkUpdates<PolicyMetrics> {
  const { config } = parent;
  const model = { config, lora: parent.adapter?.lora, compute };
  const loss = lossOf(objective);
  const sequences = sequencesOf(batch);
  const computed = sequences.filter((sequence) => movesWeights(batch, loss, sequence));
  const mask = maskOf(batch, computed);
  const pack = packing(backend, config, compute, batch, computed);
  // Cut and weighted as if everything were computed.
  const moving = new Set(computed);
  const updates = batch.updates.map((given) => {
    const minibatch = [...given];
    const own = minibatch.filter((sequence) => moving.has(sequence));
    return { minibatch, own, rows: pack(own) };
  });
  const single = updates.length === 1;

  const wanted = loss.reads(single);
  // What prefers reads the reference, too, but by whole sequences, of which there is no K3.
  const measuresKl = loss.kind === 'distribution' || (loss.kind === 'token' && wanted.includes('reference'));
  const scored = batch.streams.reference === undefined && wanted.includes('reference');
  const passes = Number(wanted.includes('old')) + Number(scored);
  const all = passes > 0 ? pack(computed) : [];
  const passesOfUpdate = loss.kind === 'coupled' ? 2 : 1;
  const { topK } = loss.from;
  const kept = topK === 0 ? undefined : { sets: batch.kept ?? nothingCut(batch), most: topK };
  const micro = createMicroBatches(backend, runner, batch.tokens.length, kept, advance);

  // Zero where nothing counts, for a weight of zero does not make up for an exponential that overflows: Inf · 0 is NaN.
  const counted = (values: Float32Array): Float32Array =>
    values.map((value, i) => (mask[i] === 1 ? value : 0));
  const logprobsNow = logprobProgram(backend, model, loss.from);
  const perToken: Partial<Record<TokenInput, Float32Array>> = {};
  const program =
    loss.kind === 'distribution'
      ? distillationProgram(
          backend,
          model,
          teachers.map(({ config }) => config),
          loss,
        )
      : trainingProgram(backend, model, loss.kind === 'token' ? loss : linearLoss(loss.from), single);
  const fixed = loss.kind === 'distribution' ? teachers.flatMap(({ tensors }) => tensors) : [];
  const shares = loss.kind === 'distribution' ? loss.shares(batch).map(counted) : [];

  const sums = { loss: 0, gradientNorm: 0, entropy: 0, kl: 0, clipped: 0, tokens: 0 };
  const cosines: number[] = [];
  const [margins, accuracies]: number[][] = [[], []];
  let parentLogprobs: Float32Array | undefined;
  // What the weights that the step starts from have given log-probs.
  const told = () => (perToken.old ? computed : updates[0]!.own);
  const sampled = () => (loss.ofSamples ? told() : []);
  const gapNow = () => ownGap(batch, sampled(), parentLogprobs!);
  return {
    passes: passes * all.length + passesOfUpdate * updates.reduce((sum, { rows }) => sum + rows.length, 0),
    begin: async () => {
      for (const name of wanted) {
        if (name !== 'old' && batch.streams[name]) perToken[name] = counted(batch.streams[name]);
      }
      if (scored) {
        const program = logprobProgram(backend, { config, compute }, loss.from);
        perToken.reference = counted(await micro.perToken(program, reference!, all));
        refuseNonFinite(perToken.reference, 'the reference');
      }
      if (wanted.includes('old')) {
        perToken.old = counted(await micro.perToken(logprobsNow, [...frozen, ...adam.weights()], all));
        refuseNonFinite(perToken.old, 'the weights that the step starts from');
        parentLogprobs = perToken.old;
      }
    },
    update: async (index) => {
      const { minibatch, rows } = updates[index]!;
      const parameters = [...frozen, ...adam.weights()];
      const before = parent.updates + index;
      let coupled: CoupledResult | undefined;
      let inputs: Float32Array[];
      if (loss.kind === 'coupled') {
        const logprobs = counted(await micro.perToken(logprobsNow, parameters, rows));
        refuseNonFinite(logprobs, `the weights before update ${before + 1}`);
        coupled = loss.compute(batch, minibatch, { ...perToken, logprobs });
        inputs = [coupled.slopes];
      } else {
        inputs = [loss.weights(batch, minibatch), ...wanted.map((name) => perToken[name]!), ...shares];
      }
      const result = await micro.gradient(program, [...parameters, ...fixed], rows, mask, inputs, 3);
      // With a single update its own forward pass runs under the parent's weights.
      parentLogprobs ??= result.perToken;
      try {
        refuseNonFinite(result.perToken, `the weights before update ${before + 1}`);
        if (loss.kind === 'distribution') refuseBrokenTeacher(result.loss);
        if (index === 0) refuseGap(gapNow().logprobGapMean, maxLogprobGap);
      } catch (error) {
        dispose(result.gradients);
        throw error;
      }
      const value = coupled?.loss ?? result.loss;
      const { gradients } = result;
      const name = `update ${before + 1}`;
      const { norm, momentumCosine } = await descend(backend, runner, adam, {
        gradients,
        loss: value,
        settings: optimizer,
        before,
        name,
      });

      const [entropy, kl, clipped] = result.sums as [number, number, number];
      sums.loss += value;
      sums.gradientNorm += norm;
      cosines.push(...known(momentumCosine));
      sums.entropy += entropy;
      sums.kl += kl;
      sums.clipped += coupled?.clipped?.reduce((sum, bit) => sum + bit, 0) ?? clipped;
      margins!.push(...known(coupled?.preference?.margin));
      accuracies!.push(...known(coupled?.preference?.accuracy));
      sums.tokens += result.tokens;
    },
    metrics: () => {
      const tokens = Math.max(1, sums.tokens);
      const weighs = wanted.includes('samplerLogprobs');
      const effective = weighs && effectiveSamples(batch, told(), parentLogprobs!);
      return {
        loss: sums.loss / updates.length,
        gradientNorm: sums.gradientNorm / updates.length,
        gradientMomentumCosine: meanOf(cosines),
        entropy: sums.entropy / tokens,
        kl: measuresKl ? sums.kl / tokens : null,
        clipFraction: loss.clips ? sums.clipped / tokens : null,
        ...(loss.prefers && { preference: { margin: meanOf(margins!), accuracy: meanOf(accuracies!) } }),
        ...gapNow(),
        ...gapByStaleness(batch, sampled(), parentLogprobs!),
        ...(effective && { effectiveSamples: effective }),
        tokens: updates.reduce((sum, { own }) => sum + lengthOf(batch, own), 0),
      };
    },
  };
}

/** Of a student whose log-probs are numbers. */
function refuseBrokenTeacher(divergence: number): void {
  if (Number.isFinite(divergence)) return;
  throw new GradusError(
    'learner',
    'diverged',
    `the divergence from the teachers is ${divergence}, and the log-probs of the student are numbers: the weights of a teacher are broken. Name another checkpoint for it.`,
  );
}

const known = (value: number | null | undefined): number[] => (typeof value === 'number' ? [value] : []);

const meanOf = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;

const nothingCut = ({ tokens }: TrainBatch): SamplingMask => ({
  ids: new Int32Array(0),
  offsets: new Int32Array(tokens.length + 1),
});
