import { z } from 'zod';
import { correctsSampler } from '../algorithms/index.ts';
import type { Refuse } from './check.ts';
import { amount, count, positive, runName } from '../fields.ts';
import { mostStaleness } from './collect.ts';
import type { SamplingSpec } from './sampling.ts';
import type { WrittenSpec } from './curriculum.ts';

/** Servers whose API Gradus speaks. */
export const POLICY_SERVERS = ['vllm', 'sglang', 'tinker'] as const;

const url = z.url({
  protocol: /^https?$/,
  error: 'must be the address of a server, such as http://127.0.0.1:8000',
});
const folder = z.string().min(1).max(1000, 'has at most 1000 characters');

const maxLogprobGap = amount(100, '0 has no bound')
  .default(0.1)
  .describe(
    'Mean |learner − sampler| log-prob of a step above which the step does not train but asks, nats; 0: no bound.',
  );

const servedSchema = z.strictObject({
  kind: z.literal('http').describe('Servers that are there already; see docs/serving.md.'),
  server: z.enum(POLICY_SERVERS).describe('Which API the servers speak.'),
  urls: z
    .array(url)
    .nonempty()
    .max(256, 'has at most 256 servers')
    .describe('Addresses of servers that hold the same model, without `/v1`. Each is one replica.'),
  model: z
    .string()
    .min(1)
    .max(500)
    .optional()
    .describe('Name of the model that the servers began with; the first that they list where it is absent.'),
  folder: folder
    .optional()
    .describe(
      'A folder that rollout workers write and servers read: each checkpoint is put there before servers load it. Not of `tinker`, whose servers have what their learner saved.',
    ),
  serverFolder: folder
    .optional()
    .describe('The same folder by the path that servers know; `folder` where it is absent.'),
  apiKeyVariable: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable')
    .optional()
    .describe('Environment variable of rollout workers that holds the key of the servers.'),
  dtype: z
    .enum(['float32', 'bfloat16'])
    .optional()
    .describe(
      'What weights are rounded to for servers (vLLM’s and SGLang’s `--dtype`). The learner’s and the stored ones stay float32, and name the version. Not with `model.lora`: servers then hold their own model. Absent: float32.',
    ),
  requestSeconds: positive(86_400, 'a request is one piece of a turn')
    .default(600)
    .describe('A request without an answer for this long is made again, at another server if there is one.'),
  requestTokens: count(131_072, 'no model has room for more')
    .default(512)
    .describe(
      'Tokens of one request. A longer turn takes several; the tokens of each are stored when they arrive.',
    ),
  concurrency: count(4096, 'more would wait in the server')
    .default(64)
    .describe('Requests that one server has at once.'),
  tolerance: positive(10, 'log-probs that differ by more are of other weights')
    .optional()
    .describe(
      'How far log-probs of the servers may be from the learner’s after a hand-over: mean over a fixed sequence, nats. Absent: 0.02, and 0.05 where `dtype` is bfloat16.',
    ),
  maxLogprobGap,
});

const decoderSchema = z.strictObject({
  kind: z.literal('onnx').describe('The decoder of rollout workers.'),
  dtype: z
    .enum(['float32', 'bfloat16', 'int8'])
    .default('float32')
    .describe(
      'What the decoder rounds the matrices of each checkpoint to; it computes in float32. The learner’s weights and the stored ones stay float32. Others than float32 need the native decoder.',
    ),
  maxLogprobGap: maxLogprobGap.describe(
    'As of servers, where `dtype` is not float32: mean |learner − sampler| log-prob of a step above which the step does not train but asks, nats; 0: no bound.',
  ),
});

/** Of an evaluation, which trains nothing. */
export const evaluatedPolicySchema = servedSchema
  .omit({ maxLogprobGap: true })
  .extend({
    folder: folder
      .optional()
      .describe('As in a spec, where a checkpoint is handed to the servers. Not for a model that they hold.'),
  })
  .optional()
  .describe('Servers that sample. Absent: the decoder of rollout workers, also where a run had servers.');

export const policySchema = z
  .discriminatedUnion('kind', [
    decoderSchema,
    servedSchema,
    z.strictObject({
      kind: z.literal('recorded').describe('What servers have sampled for an earlier run.'),
      run: runName.describe('The run whose sampled turns are taken. Its policy was served.'),
    }),
  ])
  .optional()
  .describe(
    'Who samples. `onnx`: the decoder of rollout workers, also where it is absent. `http`: servers that are there already. `recorded`: what servers sampled for an earlier run.',
  );

export type PolicySpec = NonNullable<z.output<typeof policySchema>>;
export type ServedPolicySpec = Extract<PolicySpec, { kind: 'http' }> & {
  /** Empty where nothing is handed over by it. */
  folder: string;
  tolerance: number;
  /** Servers get LoRA adapters for the model that they began with; otherwise all of its weights, each time. */
  adapters: boolean;
  /** Servers get nothing: they sample with the model that they began with. `folder` is empty then. */
  held?: HeldModel;
};
/** A model that servers hold and Gradus does not. */
export interface HeldModel {
  /** By which requests name it. */
  model: string;
  /** What the first of the servers says of it, by the name of what it says; see docs/serving.md. */
  says: Record<string, string>;
  /** SHA-256 of both, and of the small files that Gradus speaks by: its version, in the place of a digest of weights. */
  version: string;
}
type RecordedPolicySpec = Extract<PolicySpec, { kind: 'recorded' }>;
/** The decoder of rollout workers, with rounded weights. */
export type RoundedPolicySpec = Extract<PolicySpec, { kind: 'onnx' }>;
export type RolloutDtype = RoundedPolicySpec['dtype'];
/** Who cannot sample the same twice: what was sampled is stored. */
export type RecordingPolicySpec = ServedPolicySpec | RecordedPolicySpec;
/** Who samples, if it is not the decoder of rollout workers with the weights as they are. */
export type OtherPolicySpec = RecordingPolicySpec | RoundedPolicySpec;

/** Nats. Models of 0.02 to 0.85 million parameters that compute in bfloat16 were seen at 0.011 to 0.018 (docs/log.md). */
const TOLERANCE = { float32: 0.02, bfloat16: 0.05 } as const;

export function policyOf(written: PolicySpec | undefined, lora: boolean): OtherPolicySpec | undefined {
  if (written === undefined || isExact(written)) return undefined;
  if (written.kind !== 'http') return written;
  return { ...written, folder: written.folder ?? '', tolerance: toleranceOf(written), adapters: lora };
}

/** The decoder of rollout workers with the weights as they are, whose log-probs are the learner’s up to float32’s rounding. */
export const isExact = (policy: PolicySpec): boolean => policy.kind === 'onnx' && policy.dtype === 'float32';

/** Whether it cannot sample the same twice, so that what was sampled is stored. */
export const isRecording = (policy: OtherPolicySpec | undefined): policy is RecordingPolicySpec =>
  policy !== undefined && policy.kind !== 'onnx';

/** What the decoder of rollout workers rounds weights to; undefined: nothing is rounded, or it does not sample. */
export const roundedTo = (policy: OtherPolicySpec | undefined): RolloutDtype | undefined =>
  policy?.kind === 'onnx' ? policy.dtype : undefined;

/** Nats; what is usual for the dtype where the spec says nothing. */
export const toleranceOf = ({
  tolerance,
  dtype,
}: Pick<Extract<PolicySpec, { kind: 'http' }>, 'tolerance' | 'dtype'>): number =>
  tolerance ?? TOLERANCE[dtype ?? 'float32'];

/** Weights are truncated at this where a policy is served and the method's spec says nothing (verl's and slime's bound). */
export const SERVED_IMPORTANCE_CAP = 2;

/**
 * What servers cannot be asked for. What one server cannot do, the look at it that a run begins with says.
 */
export function checkPolicy(
  policy: { kind: PolicySpec['kind'] } | undefined,
  { topK, topP }: Pick<SamplingSpec, 'topK' | 'topP'>,
  refuse: Refuse,
): void {
  if (policy === undefined || policy.kind === 'onnx') return;
  const why =
    'log-probs of a server are then of a cut distribution, and it does not say which tokens were left';
  if (topK > 0)
    refuse(
      ['sampling', 'topK'],
      `needs the decoder of rollout workers: ${why}. Give 0, or leave out "policy"`,
    );
  if (topP < 1)
    refuse(
      ['sampling', 'topP'],
      `needs the decoder of rollout workers: ${why}. Give 1, or leave out "policy"`,
    );
}

/** Rounded weights sample with other probabilities than those that are trained, which the loss has to correct for. */
export function checkRounding(
  { policy, stages }: Pick<WrittenSpec, 'policy' | 'stages'>,
  refuse: Refuse,
): void {
  if (policy?.kind !== 'onnx' || policy.dtype === 'float32') return;
  stages.forEach((stage, s) => {
    if (stage.kind !== 'rl') return;
    const { algorithm } = stage;
    const why = `policy.dtype ${policy.dtype} samples with other probabilities than those that are trained`;
    if (!correctsSampler(algorithm))
      refuse(
        ['stages', s, 'algorithm', 'kind'],
        `${algorithm.kind} cannot weigh tokens by importance, and ${why}: choose a method with importanceCap, or leave out policy.dtype`,
      );
    else if ('importanceCap' in algorithm && algorithm.importanceCap === 0)
      refuse(
        ['stages', s, 'algorithm', 'importanceCap'],
        `${why}: set a cap above 0 (${SERVED_IMPORTANCE_CAP}, say), or leave it or policy.dtype out`,
      );
  });
}

/** What servers hold bounds what they are given: the weights of one step, or adapters of two. */
export function checkHandOver(
  { policy, stages, model }: Pick<WrittenSpec, 'policy' | 'stages' | 'model'>,
  refuse: Refuse,
): void {
  if (policy === undefined || policy.kind === 'onnx') return;
  stages.forEach((stage, s) => {
    if (
      stage.kind === 'rl' &&
      stage.collect.kind === 'asynchronous' &&
      stage.collect.onNewWeights === 'continue'
    )
      refuse(
        ['stages', s, 'collect', 'onNewWeights'],
        'servers are handed the weights of a group before it begins, and must show that they have them: set it to "finish", or leave out "policy"',
      );
  });
  if (policy.kind !== 'http') return;
  if (policy.server === 'tinker') {
    if (model.lora === undefined)
      refuse(
        ['model', 'lora'],
        'is missing: servers of Tinker’s API hold adapters. Give it, or another policy',
      );
    if (policy.folder !== undefined)
      refuse(['policy', 'folder'], 'has no effect: servers of Tinker’s API have what their learner saved');
  } else if (policy.folder === undefined) {
    refuse(['policy', 'folder'], 'is missing: give a folder that rollout workers write and servers read');
  }
  if (model.lora !== undefined && policy.dtype === 'bfloat16')
    refuse(
      ['policy', 'dtype'],
      'is of weights that servers are given, and with "model.lora" they keep those that they began with: start them with --dtype bfloat16, and leave it out',
    );
  stages.forEach((stage, s) => {
    if (stage.kind !== 'rl') return;
    // What is replayed was sampled when servers held its weights.
    const lag = stage.collect.kind === 'replay' ? 0 : mostStaleness(stage.collect);
    const at = ['stages', s, 'collect', stage.collect.kind === 'asynchronous' ? 'maxStaleness' : 'lag'];
    if (lag > 0 && model.lora === undefined)
      refuse(
        at,
        'servers hold the weights of one step at a time, and evaluations need others meanwhile: set it to 0, or train an adapter (`model.lora`), of which servers hold two',
      );
    else if (lag > 1)
      refuse(at, 'servers hold the adapters of two steps, those in use and the newest: set it to 1');
  });
}
