import { refuseUnknownMethod } from '../core/algorithms/index.ts';
import type { CurriculumSpec } from '../core/schema/curriculum-spec.ts';
import type { Refuse, SpecEnvironment, SpecEnvironments } from '../core/schema/check.ts';
import { withFittingCounts } from './fitting-counts.ts';
import { curriculumSchema } from '../core/schema/curriculum.ts';
import type { WrittenSpec } from '../core/schema/curriculum.ts';
import { withOwnNames } from './other-names.ts';
import { checkAgent } from '../core/schema/agent.ts';
import { checkEvaluation, evaluationOf } from '../core/schema/evaluation.ts';
import { checkModel, MODEL_DEFAULTS, modelOf } from '../core/schema/model.ts';
import type { NamedModel } from '../core/schema/model.ts';
import { checkHandOver, checkPolicy, checkRounding, policyOf } from '../core/schema/policy.ts';
import {
  checkJudge,
  checkReward,
  checkRewardModel,
  learnedTierOf,
  rewardSpecOf,
} from '../core/schema/reward.ts';
import { checkSampling } from '../core/schema/sampling.ts';
import { checkStages, stagesOf } from '../core/schema/stages/stages.ts';
import { checkVerification, verificationOf } from '../core/schema/verification.ts';
import { checkNames } from '../core/schema/tasks.ts';
import { withServedDefaults } from './served-defaults.ts';
import { inside, parseStrictly, refusalOfSpec } from '../core/schema/strict.ts';
import type { Path, SpecProblem } from '../core/schema/strict.ts';

/** A spec whose names are checked; only the store can say which checkpoint a model's origin is. */
export type ParsedSpec = Omit<CurriculumSpec, 'model'> & { model: NamedModel };

const WHAT = 'the curriculum spec';

/**
 * Reads a curriculum spec strictly. `run` names the run where the spec does not.
 * Throws GradusError('spec', 'invalid'), not retryable, with one line per problem: its path, what is wrong, and the
 * nearest valid name.
 */
export function parseSpec(written: unknown, run: string, environments: SpecEnvironments): ParsedSpec {
  const own = readNames(written).written;
  const shape = readShape(own);
  refuseUnknownMethods(shape);
  const spec = withServedDefaults(own, withFittingCounts(own, shape, environments));
  const problems: SpecProblem[] = [];
  check(spec, environments, (path, message) => {
    problems.push({ path, message: message + noteOfDefault(path, own, spec) });
  });
  if (problems.length > 0) throw refusalOfSpec(WHAT, problems);
  return normalize(spec, run, environments);
}

/** What can be said of a spec without environments: fields, their types and their bounds. Throws as `parseSpec`. */
export function readShape(written: unknown): WrittenSpec {
  refuseWarmStart(written);
  return parseStrictly(curriculumSchema, readNames(written).written, WHAT);
}

/** A spec with Gradus's names of fields, and a hint for each that another trainer calls otherwise. Throws as `parseSpec`. */
export const readNames = (written: unknown): { written: unknown; hints: string[] } =>
  withOwnNames(curriculumSchema, written, WHAT);

/** Of a method that is not known here nothing else can be said. */
function refuseUnknownMethods({ stages }: WrittenSpec): void {
  const problems = stages.flatMap((stage, s): SpecProblem[] =>
    stage.kind !== 'rl'
      ? []
      : refuseUnknownMethod(stage.algorithm).map(({ field, message }) => ({
          path: ['stages', s, 'algorithm', ...field.split('.')],
          message,
        })),
  );
  if (problems.length > 0) throw refusalOfSpec(WHAT, problems);
}

/** Says what to write in place of the warm start that specs had beside their stages. */
function refuseWarmStart(written: unknown): void {
  const { warm_start: snake, warmStart = snake } = Object(written) as Record<string, object | undefined>;
  if (warmStart === undefined) return;
  const stage = JSON.stringify({ kind: 'supervised', name: 'warm-start', ...warmStart });
  const message = `is a stage: take it out, and put this at the beginning of "stages": ${stage}`;
  throw refusalOfSpec(WHAT, [{ path: [snake === warmStart ? 'warm_start' : 'warmStart'], message }]);
}

/** What is refused of a field that nobody wrote is its default, which a person has not heard of. */
function noteOfDefault(path: Path, written: unknown, spec: WrittenSpec): string {
  const value = path.reduce(inside, spec);
  const isDefault = path.reduce(inside, written) === undefined && typeof value === 'number';
  return isDefault ? ` (${String(path.at(-1))} is not written, and ${value} by default)` : '';
}

/** What the shape cannot say: names that do not exist, values that exclude each other, goals that cannot be reached. */
function check(spec: WrittenSpec, environments: SpecEnvironments, refuse: Refuse): void {
  const { model, sampling, reward, verification, stages, evaluation } = spec;
  const used = usedBy(spec, environments);
  const sections = stages.map(({ tasks }, s) => ({ tasks, path: ['stages', s, 'tasks'] as Path }));
  sections.push({ tasks: evaluation.tasks, path: ['evaluation', 'tasks'] });
  checkNames(sections, environments, refuse);
  const online = stages.filter((stage) => stage.kind === 'rl');
  checkReward(reward, { hasLadder: verification !== undefined, sampling, stages: online }, used, refuse);
  checkRewardModel(
    reward,
    { stages, hasLadder: verification !== undefined, branches: spec.agent?.branches === 'train' },
    refuse,
  );
  checkJudge(
    reward,
    {
      stages,
      hasLadder: verification !== undefined,
      branches: spec.agent?.branches === 'train',
      policy: spec.policy,
      maxPositions:
        model.from === undefined ? (model.maxPositions ?? MODEL_DEFAULTS.maxPositions) : undefined,
    },
    refuse,
  );
  if (verification) checkVerification(verification, reward, used, refuse);
  checkModel(model, sampling, refuse);
  checkSampling(sampling, refuse);
  checkPolicy(spec.policy, sampling, refuse);
  checkHandOver(spec, refuse);
  checkRounding(spec, refuse);
  checkAgent(spec, environments, refuse);
  checkStages(stages, spec, environments, refuse);
  checkEvaluation(evaluation, environments, refuse);
}

/** The environments that tasks are drawn from, once each, as far as there are such. */
function usedBy({ stages, evaluation }: WrittenSpec, environments: SpecEnvironments): SpecEnvironment[] {
  const tasks = [...stages, evaluation].flatMap((section) => section.tasks);
  const names = new Set(tasks.map(({ environment }) => environment));
  return [...names].flatMap((name) => environments.get(name) ?? []);
}

function normalize(written: WrittenSpec, run: string, environments: SpecEnvironments): ParsedSpec {
  const { model, stages, reward } = written;
  const judge = stages.find(({ name }) => name === reward.model?.stage);
  const learntFrom = judge?.kind === 'reward' ? judge.episodes.run : undefined;
  const verification =
    written.verification &&
    verificationOf(
      written.verification,
      environments.get(stages[0]!.tasks[0]!.environment)!,
      reward.model && learnedTierOf(reward.model, written.seed, learntFrom),
    );
  const taskVersions = Object.fromEntries(
    usedBy(written, environments).flatMap(({ name, version }) => (version ? [[name, version]] : [])),
  );
  const policy = policyOf(written.policy, model.lora !== undefined);
  return {
    run: written.run ?? run,
    seed: written.seed,
    model: modelOf(model),
    ...(model.lora && { lora: model.lora }),
    learner: written.learner,
    ...(policy && { policy }),
    ...(written.agent && { agent: written.agent }),
    ...(Object.keys(taskVersions).length > 0 && { taskVersions }),
    sampling: written.sampling,
    reward: rewardSpecOf(reward, written.sampling, verification),
    ...(verification && { verification }),
    stages: stagesOf(stages, written.sampling, environments),
    evaluation: evaluationOf(written.evaluation),
    retention: written.retention,
  };
}
