import type { CurriculumSpec } from '../core/spec.ts';
import type { Refuse, SpecEnvironment, SpecEnvironments } from './check.ts';
import { curriculumSchema } from './curriculum.ts';
import type { WrittenSpec } from './curriculum.ts';
import { checkEvaluation, evaluationOf } from './sections/evaluation.ts';
import { checkModel, modelOf } from './sections/model.ts';
import type { NamedModel } from './sections/model.ts';
import { checkReward, rewardOf } from './sections/reward.ts';
import { checkSampling } from './sections/sampling.ts';
import { checkStageNames } from './sections/stages/names.ts';
import { checkRlStage, rlStageOf } from './sections/stages/rl.ts';
import { checkWarmStart, warmStartOf } from './sections/stages/warm-start.ts';
import { checkVerification, verificationOf } from './sections/verification.ts';
import { parseStrictly, refusal } from './strict.ts';
import type { Problem } from './strict.ts';

/** A spec whose names are checked; only the store can say which checkpoint a model's origin is. */
export type ParsedSpec = Omit<CurriculumSpec, 'model'> & { model: NamedModel };

const WHAT = 'the curriculum spec';

/**
 * Reads a curriculum spec strictly. `run` names the run where the spec does not.
 * Throws GradusError('spec', 'invalid'), not retryable, with one line per problem: its path, what is wrong, and the
 * nearest valid name.
 */
export function parseSpec(written: unknown, run: string, environments: SpecEnvironments): ParsedSpec {
  const spec = parseStrictly(curriculumSchema, written, WHAT);
  const problems: Problem[] = [];
  check(spec, environments, (path, message) => void problems.push({ path, message }));
  if (problems.length > 0) throw refusal(WHAT, problems);
  return normalize(spec, run, environments);
}

/** What the shape cannot say: names that do not exist, values that exclude each other, goals that cannot be reached. */
function check(spec: WrittenSpec, environments: SpecEnvironments, refuse: Refuse): void {
  const { model, sampling, reward, verification, warmStart, stages, evaluation } = spec;
  const used = usedBy(spec, environments);
  checkReward(reward, verification !== undefined, used, refuse);
  if (verification) checkVerification(verification, reward, used, refuse);
  checkModel(model, sampling, refuse);
  checkSampling(sampling, refuse);
  checkStageNames(stages, refuse);
  const context = { lora: model.lora !== undefined };
  stages.forEach((stage, s) =>
    checkRlStage(stage, verification, context, ['stages', s], environments, refuse),
  );
  if (warmStart) checkWarmStart(warmStart, environments, refuse);
  else if (model.from === undefined) {
    refuse(
      ['warmStart'],
      'is missing: a model from scratch cannot act yet; only one with model.from can go without',
    );
  }
  checkEvaluation(evaluation, environments, refuse);
}

/** The environments that tasks are drawn from, once each, as far as there are such. */
function usedBy(
  { warmStart, stages, evaluation }: WrittenSpec,
  environments: SpecEnvironments,
): SpecEnvironment[] {
  const tasks = [...(warmStart?.tasks ?? []), ...stages.flatMap((stage) => stage.tasks), ...evaluation.tasks];
  const names = new Set(tasks.map(({ environment }) => environment));
  return [...names].flatMap((name) => environments.get(name) ?? []);
}

function normalize(written: WrittenSpec, run: string, environments: SpecEnvironments): ParsedSpec {
  const { model, warmStart, stages } = written;
  const verification =
    written.verification &&
    verificationOf(written.verification, environments.get(stages[0]!.tasks[0]!.environment)!);
  return {
    run: written.run ?? run,
    seed: written.seed,
    model: modelOf(model),
    ...(model.lora && { lora: model.lora }),
    learner: written.learner,
    sampling: written.sampling,
    reward: rewardOf(written.reward, verification),
    ...(verification && { verification }),
    warmStart: warmStart ? warmStartOf(warmStart) : null,
    stages: stages.map((stage) => rlStageOf(stage, written.sampling)),
    evaluation: evaluationOf(written.evaluation),
    retention: written.retention,
  };
}
