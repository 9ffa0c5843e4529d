import { z } from 'zod';
import { refuseExtension } from '../extensions/registry.ts';
import type { SamplingSpec } from '../schema/sampling.ts';
import { agentq } from './agentq.ts';
import { cispo } from './cispo.ts';
import { dapo } from './dapo.ts';
import { dpo } from './dpo.ts';
import { gigpo } from './gigpo.ts';
import { grpo } from './grpo.ts';
import { gspo } from './gspo.ts';
import { hindsight } from './hindsight.ts';
import { kto } from './kto.ts';
import type { TaskGroup } from './task-group.ts';
import type { SampleAdvantages } from './advantage.ts';
import { USUAL_LEARNING_RATE } from './method.ts';
import type { Method, MethodContext, Plan } from './method.ts';
import type { MovingMeans } from './moving-means.ts';
import type { Objective } from './objective.ts';
import { opd } from './opd.ts';
import { ownAlgorithmSchema, ownMethod } from './own.ts';
import type { OwnAlgorithm } from './own.ts';
import { ppo } from './ppo.ts';
import { process } from './process.ts';
import { reinforcePlusPlus } from './reinforce-plus-plus.ts';
import { remax } from './remax.ts';
import { rft } from './rft.ts';
import { rloo } from './rloo.ts';
import { starpo } from './starpo.ts';
import { refuseUnclipped } from './unclipped.ts';
import { vapo } from './vapo.ts';
import { vtrace } from './vtrace.ts';

const METHODS = {
  grpo,
  dapo,
  gspo,
  cispo,
  rloo,
  'reinforce++': reinforcePlusPlus,
  remax,
  ppo,
  vapo,
  'starpo-s': starpo,
  vtrace,
  gigpo,
  process,
  rft,
  dpo,
  agentq,
  kto,
  opd,
  hindsight,
};

export const METHOD_KINDS = Object.keys(METHODS) as (keyof typeof METHODS)[];

type Schema = (typeof METHODS)[keyof typeof METHODS]['schema'];

/** What a spec says of its method: the section of one of these, or of one that a project brings, by its `kind`. */
export type AlgorithmSpec = z.output<Schema> | OwnAlgorithm;

const OFF_POLICY = METHOD_KINDS.filter((kind) => METHODS[kind].offPolicy);

const WITH_BRANCHES = METHOD_KINDS.filter(
  (kind) => (METHODS[kind] as { branches?: boolean }).branches === true,
);

/** Those of them that weigh samples only where the spec says so. */
const OFF_POLICY_WEIGHTED = OFF_POLICY.filter((kind) => 'importanceCap' in METHODS[kind].schema.shape);

/** Those of them whose advantages are of a group alone: what it was sampled with does not count when it is replayed. */
const REPLAYED = OFF_POLICY_WEIGHTED.filter((kind) => METHODS[kind].perGroup);

/** Those that take samples of weights that are behind, and no stored ones. */
const LAGGING = METHOD_KINDS.filter((kind) => (METHODS[kind] as { lags?: boolean }).lags === true);

/** `stages[].algorithm`: GRPO where no `kind` is given. */
export const algorithmSchema = z.discriminatedUnion('kind', [
  ...Object.values(METHODS).map(({ schema }) => schema),
  ownAlgorithmSchema,
] as [Schema, ...Schema[], typeof ownAlgorithmSchema]);

/** Those that read what single turns are paid. */
export const READ_TURNS = METHOD_KINDS.filter((kind) => METHODS[kind].readsTurns);

/** Each method is asked about its own section only. Throws as `ownMethod`. */
const methodOf = (spec: AlgorithmSpec) =>
  (spec.kind === 'own' ? ownMethod(spec) : METHODS[spec.kind]) as unknown as Method<
    z.ZodObject,
    AlgorithmSpec
  >;

/** What must be said of a section before anything else is asked about it: a project's method may not be known here. */
export const refuseUnknownMethod = (spec: AlgorithmSpec): { field: string; message: string }[] =>
  spec.kind === 'own' ? refuseExtension('method', spec) : [];

export const readsTurns = (spec: AlgorithmSpec): boolean => methodOf(spec).readsTurns;

export const ignoresScale = (spec: AlgorithmSpec): boolean => methodOf(spec).ignoresScale?.(spec) ?? false;

export const learnsWhole = (spec: AlgorithmSpec): boolean => methodOf(spec).whole === true;

/** Whether it makes good that samples are of other probabilities than those that are trained, where its cap is above 0 if it has one. */
export const correctsSampler = (spec: AlgorithmSpec): boolean =>
  'importanceCap' in spec || methodOf(spec).offPolicy;

export const takesBranches = (spec: AlgorithmSpec): boolean => methodOf(spec).branches === true;

export const learningRateOf = (spec: AlgorithmSpec): number =>
  methodOf(spec).learningRate ?? USUAL_LEARNING_RATE;

export const planAlgorithm = (spec: AlgorithmSpec, sampling: SamplingSpec): Plan =>
  methodOf(spec).plan(spec, sampling);

export const computeAdvantages = (
  spec: AlgorithmSpec,
  groups: readonly TaskGroup[],
  before?: MovingMeans,
): SampleAdvantages[] => methodOf(spec).advantages(groups, spec, before);

export const movingMeans = (
  spec: AlgorithmSpec,
  groups: readonly TaskGroup[],
  before?: MovingMeans,
): MovingMeans | undefined => methodOf(spec).movingMeans?.(groups, spec, before);

/** What a method cannot go with, by the field of its section; `objective` is the loss of its plan. */
export function refuseAlgorithm(
  spec: AlgorithmSpec,
  context: MethodContext,
  objective?: Objective,
): { field: string; message: string }[] {
  const method = methodOf(spec);
  if (context.late && !method.perGroup) {
    const message = `${spec.kind} cannot correct for late verdicts: set verification.offerLateFor to 0`;
    return [{ field: 'kind', message }];
  }
  if (context.branches && !method.branches) {
    const message = `${spec.kind} does not train episodes with branches, which an agent may make: choose ${WITH_BRANCHES.join(', ')}, or set agent.branches to fail`;
    return [{ field: 'kind', message }];
  }
  if (context.replays) {
    if (!(REPLAYED as string[]).includes(spec.kind)) {
      const message = `${spec.kind} has advantages or losses of a step as a whole, and groups of earlier steps are replayed: choose ${REPLAYED.join(', ')}, or leave out collect`;
      return [{ field: 'kind', message }];
    }
    if ('importanceCap' in spec && spec.importanceCap === 0) {
      const message =
        'earlier weights have sampled the groups that are replayed: set a cap above 0 (2, say), or collect.part to 0';
      return [{ field: 'importanceCap', message }];
    }
  }
  const takesLag = method.offPolicy || method.lags === true;
  if ((context.stored && !method.offPolicy) || (context.lags !== null && !takesLag)) {
    const others = OFF_POLICY.filter((kind) => !OFF_POLICY_WEIGHTED.includes(kind));
    const weighted = [...OFF_POLICY_WEIGHTED, ...(context.lags === null ? [] : LAGGING)];
    const message = `${spec.kind} is on-policy and needs fresh samples: choose ${others.join(', ')}, or with an importanceCap (2, say) ${weighted.join(', ')}, or ${context.lags === null ? 'leave out collect' : `set collect.${context.lags} to 0`}`;
    return [{ field: 'kind', message }];
  }
  const { maxStaleness = 0, allowUnclipped = false } = context;
  const unclipped = objective && refuseUnclipped(spec.kind, objective, { maxStaleness, allowUnclipped });
  if (unclipped) return [{ field: 'kind', message: unclipped }];
  if (context.stored && 'maxRefills' in spec && spec.maxRefills > 0)
    return [{ field: 'maxRefills', message: 'does nothing where no task is sampled: set it to 0' }];
  return method.refuse?.(spec, context) ?? [];
}
