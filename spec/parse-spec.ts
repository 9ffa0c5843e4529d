import { LADDER } from '../core/ladder/requests.ts';
import { armName, HELD_OUT } from '../core/names.ts';
import { TIERS } from '../core/episode/outcome.ts';
import type { Split } from '../core/refs.ts';
import { mostThatCanBeShown, plannedLooks } from '../core/training/stage-policy.ts';
import { DIALECTS } from '../core/spec.ts';
import type {
  Arm,
  CurriculumSpec,
  DialectSpec,
  ModelSource,
  ModelSpec,
  VerificationSpec,
} from '../core/spec.ts';
import { MOST_KEPT } from '../engine/decoder/sampler.ts';
import { weightShapes } from '../engine/model-config.ts';
import type { Environment } from '../environments/contract.ts';
import { curriculumSchema, MODEL_DEFAULTS, MOST_EPISODES, MOST_TASKS } from './schema.ts';
import { didYouMean, parseStrictly, refusal } from './strict.ts';
import type { Path, Problem } from './strict.ts';
import type { VerifierFacts } from '../environments/host/facts.ts';
import type { WrittenSpec } from './schema.ts';

type WrittenTasks = WrittenSpec['evaluation']['tasks'];

/** A spec whose names are checked; only the store can say which checkpoint a model's origin is. */
export type ParsedSpec = Omit<CurriculumSpec, 'model'> & {
  model:
    | Extract<ModelSource, { kind: 'scratch' }>
    | { kind: 'from'; run: string; step: number | null; dialect?: DialectSpec };
};

const WHAT = 'the curriculum spec';

/** Names that every run uses for its own phases, workflows and objects. */
const RESERVED = [
  'spec',
  'initialize',
  'warm-start',
  'before',
  'after',
  'report',
  'done',
  'evaluation',
  'ladder',
  'reverify',
  'sweep',
];
/** Child workflows of one step, which are all in one history. */
const MOST_WORKFLOWS = 1000;
/** Of one child workflow, whose trajectories are one object. */
const MOST_TOGETHER = 16_384;
/** Of a round of warm start, which is one batch. */
const MOST_DEMONSTRATIONS = 262_144;
/** Of a model from scratch: with gradients and moments 16 bytes each. */
const MOST_PARAMETERS = 1e9;

/** What a spec may name of an environment. */
export type SpecEnvironment = Pick<Environment, 'name' | 'levels' | 'taskCount'> & {
  verifiers: readonly Pick<VerifierFacts, 'name' | 'tier'>[];
};

/**
 * Reads a curriculum spec strictly. `run` names the run where the spec does not.
 * Throws GradusError('spec', 'invalid'), not retryable, with one line per problem: its path, what is wrong, and the
 * nearest valid name.
 */
export function parseSpec(
  written: unknown,
  run: string,
  environments: ReadonlyMap<string, SpecEnvironment>,
): ParsedSpec {
  const spec = parseStrictly(curriculumSchema, written, WHAT);
  const problems = contradictions(spec, environments);
  if (problems.length > 0) throw refusal(WHAT, problems);
  return normalize(spec, run, environments);
}

/** What the shape cannot say: names that do not exist, values that exclude each other, goals that cannot be reached. */
function contradictions(spec: WrittenSpec, environments: ReadonlyMap<string, SpecEnvironment>): Problem[] {
  const problems: Problem[] = [];
  const add = (path: Path, message: string): void => void problems.push({ path, message });

  const used = new Set<string>();
  const checkTasks = (tasks: WrittenTasks, path: Path): void => {
    const named = new Set<string>();
    tasks.forEach((entry, i) => {
      const environment = environments.get(entry.environment);
      if (!environment) {
        const valid = [...environments.keys()];
        add(
          [...path, i, 'environment'],
          `no environment "${entry.environment}"${didYouMean(entry.environment, valid)}`,
        );
        return;
      }
      used.add(entry.environment);
      entry.levels.forEach((level, l) => {
        if (!environment.levels.includes(level)) {
          const valid = environment.levels.join(', ');
          add([...path, i, 'levels', l], `"${entry.environment}" has no level ${level}; valid: ${valid}`);
        }
        const arm = armName({ environment: entry.environment, level });
        if (named.has(arm))
          add([...path, i, 'levels', l], `${arm} is named twice; its tasks would count twice`);
        named.add(arm);
      });
    });
  };
  /** A measurement in which a task counts twice claims more confidence than it has. */
  const checkCount = (tasks: WrittenTasks, split: Split, count: number, path: Path): void => {
    const arms = armsOf(tasks);
    arms.forEach(({ environment, level }, i) => {
      const known = environments.get(environment);
      if (!known?.levels.includes(level)) return;
      const asked = Math.ceil((count - i) / arms.length);
      const there = known.taskCount(split, level);
      if (asked > there) {
        add(path, `asks for ${asked} ${split} tasks of ${environment}:${level}, which has ${there}`);
      }
    });
  };
  if (spec.warmStart) checkTasks(spec.warmStart.tasks, ['warmStart', 'tasks']);
  spec.stages.forEach((stage, s) => checkTasks(stage.tasks, ['stages', s, 'tasks']));
  checkTasks(spec.evaluation.tasks, ['evaluation', 'tasks']);

  checkReward(
    spec,
    [...used].map((name) => environments.get(name)!),
    add,
  );
  checkVerification(
    spec,
    [...used].map((name) => environments.get(name)!),
    add,
  );
  checkModel(spec, add);
  checkSampling(spec, add);
  checkCaps(spec, add);

  spec.stages.forEach((stage, s) => {
    const at = ['stages', s];
    // Names become folders, which some file systems do not tell apart by case.
    const lower = stage.name.toLowerCase();
    if (spec.stages.findIndex((other) => other.name.toLowerCase() === lower) !== s) {
      add(
        [...at, 'name'],
        `"${stage.name}" is the name of an earlier stage; names must differ, and not by case alone`,
      );
    }
    if (RESERVED.includes(lower) || lower.endsWith(HELD_OUT))
      add([...at, 'name'], `"${stage.name}" is what every run calls a part of its own; choose another`);
    checkStepSize(stage, at, add);
    const { tasks, confidence, successAtLeast } = stage.graduation;
    const reachable = mostThatCanBeShown(stage);
    if (reachable < successAtLeast) {
      add(
        [...at, 'graduation', 'successAtLeast'],
        `${tasks} tasks at ${confidence} confidence in ${plannedLooks(stage)} evaluations show at most ${reachable.toFixed(4)}: raise graduation.tasks, measure less often, or lower this`,
      );
    }
    const arms = armsOf(stage.tasks).length;
    if (tasks < arms)
      add([...at, 'graduation', 'tasks'], `fewer tasks than the ${arms} levels they are spread over`);
    checkCount(stage.tasks, 'heldout', tasks, [...at, 'graduation', 'tasks']);
  });
  const { warmStart, evaluation } = spec;
  if (warmStart) {
    const warmTasks = warmStart.graduation.tasksPerLevel * armsOf(warmStart.tasks).length;
    checkCount(warmStart.tasks, 'heldout', warmTasks, ['warmStart', 'graduation', 'tasksPerLevel']);
    if (warmTasks > MOST_TASKS) {
      add(
        ['warmStart', 'graduation', 'tasksPerLevel'],
        `makes ${warmTasks} tasks a measurement, at most ${MOST_TASKS}: lower it`,
      );
    }
    const demonstrations = warmStart.updatesPerRound * warmStart.minibatch;
    if (demonstrations > MOST_DEMONSTRATIONS) {
      add(
        ['warmStart', 'updatesPerRound'],
        `makes ${demonstrations} demonstrations a round with ${warmStart.minibatch} an update, at most ${MOST_DEMONSTRATIONS}: lower it and raise maxRounds`,
      );
    }
  } else if (spec.model.from === undefined) {
    add(
      ['warmStart'],
      'is missing: a model from scratch cannot act yet; only one with model.from can go without',
    );
  }
  checkCount(evaluation.tasks, 'test', evaluation.count, ['evaluation', 'count']);
  return problems;
}

function checkStepSize(
  stage: WrittenSpec['stages'][number],
  at: Path,
  add: (path: Path, message: string) => void,
): void {
  const { groupsPerStep, groupsPerWorkflow, numGenerations } = stage;
  const episodes = groupsPerStep * numGenerations;
  if (episodes > MOST_EPISODES) {
    add(
      [...at, 'groupsPerStep'],
      `makes ${episodes} episodes a step with ${numGenerations} samples each, at most ${MOST_EPISODES}: lower it and take more steps`,
    );
  }
  const workflows = Math.ceil(groupsPerStep / groupsPerWorkflow);
  if (workflows > MOST_WORKFLOWS) {
    add(
      [...at, 'groupsPerWorkflow'],
      `makes ${workflows} child workflows of the ${groupsPerStep} tasks of a step, at most ${MOST_WORKFLOWS}: raise it`,
    );
  }
  const together = Math.min(groupsPerStep, groupsPerWorkflow) * numGenerations;
  if (together > MOST_TOGETHER) {
    add(
      [...at, 'groupsPerWorkflow'],
      `makes ${together} episodes a child workflow, at most ${MOST_TOGETHER}: lower it`,
    );
  }
}

function checkReward(
  spec: WrittenSpec,
  environments: readonly SpecEnvironment[],
  add: (path: Path, message: string) => void,
): void {
  const { components } = spec.reward;
  const outcomes = components.filter((component) => component.role === 'outcome').length;
  if (outcomes !== 1) {
    add(['reward', 'components'], `exactly one component must have role "outcome"; ${outcomes} have`);
  }
  components.forEach((component, i) => {
    const at = ['reward', 'components', i];
    for (const environment of environments) {
      const valid = [
        ...environment.verifiers.filter(({ tier }) => tier === 'fast').map(({ name }) => name),
        ...(spec.verification ? [LADDER] : []),
      ];
      if (!valid.includes(component.verifier)) {
        add(
          [...at, 'verifier'],
          `environment "${environment.name}" has no verifier "${component.verifier}"${didYouMean(component.verifier, valid)}`,
        );
      }
    }
    if (components.findIndex((other) => other.verifier === component.verifier) !== i) {
      add([...at, 'verifier'], `"${component.verifier}" is already a component`);
    }
    if (component.gatedBy !== null) {
      const valid = components.map((other) => other.verifier).filter((other) => other !== component.verifier);
      if (!valid.includes(component.gatedBy)) {
        add(
          [...at, 'gatedBy'],
          `"${component.gatedBy}" is no other component${didYouMean(component.gatedBy, valid)}`,
        );
      }
      if (component.role === 'outcome') add([...at, 'gatedBy'], 'the outcome cannot be gated: it decides');
    }
    if (component.role === 'outcome' && component.weight === 0)
      add([...at, 'weight'], 'the outcome would be worth nothing: give it a weight above 0');
  });
}

function checkVerification(
  { verification, reward, stages }: WrittenSpec,
  environments: readonly SpecEnvironment[],
  add: (path: Path, message: string) => void,
): void {
  const names = verification?.rungs.map(({ verifier }) => verifier) ?? [];
  stages.forEach((stage, s) => {
    for (const name of Object.keys(stage.budgets ?? {})) {
      if (!names.includes(name))
        add(['stages', s, 'budgets', name], `no rung has this verifier${didYouMean(name, names)}`);
    }
    if (verification && verification.offerLateFor > 0 && stage.algorithm.importanceCap === 0) {
      add(
        ['stages', s, 'algorithm', 'importanceCap'],
        'late verdicts bring episodes of an earlier policy before the learner: set a cap above 0 (2, say), or verification.offerLateFor to 0',
      );
    }
  });
  if (!verification) return;
  if (!reward.components.some(({ verifier, role }) => verifier === LADDER && role === 'outcome')) {
    add(
      ['verification'],
      `does nothing unless reward.components has { "verifier": "${LADDER}", "role": "outcome" }`,
    );
  }
  const { evaluateBy } = verification;
  if (evaluateBy !== undefined && !names.includes(evaluateBy)) {
    add(['verification', 'evaluateBy'], `no rung has this verifier${didYouMean(evaluateBy, names)}`);
  }
  verification.rungs.forEach(({ verifier: name }, i) => {
    const at = ['verification', 'rungs', i, 'verifier'];
    if (names.indexOf(name) !== i) add(at, `"${name}" is already a rung`);
    for (const environment of environments) {
      const known = environment.verifiers.find((other) => other.name === name);
      if (!known) {
        const valid = environment.verifiers.map((verifier) => verifier.name);
        add(at, `environment "${environment.name}" has no verifier "${name}"${didYouMean(name, valid)}`);
        continue;
      }
      if (i === 0 && known.tier !== 'fast')
        add(at, `is of tier ${known.tier}; the lowest rung must be a fast one`);
      if (i > 0 && known.tier === 'fast') add(at, 'is a fast verifier; only the lowest rung may be one');
      const below = environment.verifiers.find((other) => other.name === names[i - 1]);
      if (below && TIERS.indexOf(known.tier) < TIERS.indexOf(below.tier)) {
        add(
          at,
          `of tier ${known.tier} lies above "${below.name}" of tier ${below.tier}: put the cheaper one first`,
        );
      }
    }
  });
}

/**
 * What sampling keeps is written down with every token, for the loss to speak of the same distribution. Of top-p alone
 * that has no bound.
 */
function checkSampling({ sampling }: WrittenSpec, add: (path: Path, message: string) => void): void {
  const { topK, topP } = sampling;
  if (topP < 1 && topK === 0)
    add(
      ['sampling', 'topP'],
      `may keep the whole vocabulary, and what is kept is written down with each token: give a topK of 2 to ${MOST_KEPT} besides`,
    );
  if (topK === 1)
    add(['sampling', 'topK'], 'of 1 leaves nothing to choose and nothing to learn: give 2 or more');
}

/** A cap between 0 and 1 would weigh tokens less that need no correction. */
function checkCaps({ stages }: WrittenSpec, add: (path: Path, message: string) => void): void {
  stages.forEach(({ algorithm: { importanceCap } }, s) => {
    if (importanceCap > 0 && importanceCap < 1)
      add(
        ['stages', s, 'algorithm', 'importanceCap'],
        'below 1 weighs down also what was sampled by the very policy: give 1 or more, or 0 to leave the weight out',
      );
  });
}

function checkModel(spec: WrittenSpec, add: (path: Path, message: string) => void): void {
  const { sampling } = spec;
  checkDialect(spec.model, add);
  if (spec.model.from !== undefined) {
    for (const field of Object.keys(MODEL_DEFAULTS) as (keyof typeof MODEL_DEFAULTS)[]) {
      if (spec.model[field] !== undefined)
        add(
          ['model', field],
          `is what the checkpoint ${spec.model.from} says: leave it out, or leave out "from"`,
        );
    }
    return;
  }
  const model = shapeOf(spec.model);
  if (model.attentionHeads % model.keyValueHeads !== 0) {
    add(
      ['model', 'keyValueHeads'],
      `${model.attentionHeads} attention heads cannot be shared by ${model.keyValueHeads} key-value heads: one must divide the other`,
    );
  }
  const parameters = parametersOf(model);
  if (parameters > MOST_PARAMETERS) {
    add(
      ['model'],
      `has ${(parameters / 1e9).toFixed(1)} billion parameters, at most ${MOST_PARAMETERS / 1e9}: lower hiddenSize or layers`,
    );
  }
  if (model.headSize % 16 !== 0) {
    add(['model', 'headSize'], 'must be a multiple of 16: the decoder cannot run other ones');
  }
  if (sampling.maxCompletionTokens >= model.maxPositions) {
    add(
      ['sampling', 'maxCompletionTokens'],
      `leaves no room for a prompt in model.maxPositions = ${model.maxPositions}`,
    );
  }
}

function parametersOf(model: ModelSpec): number {
  const shapes = weightShapes({ ...model, rmsNormEpsilon: 1e-6, ropeTheta: 10_000 });
  return shapes.reduce((sum, [, shape]) => sum + shape.reduce((a, b) => a * b, 1), 0);
}

function checkDialect(
  { from, dialect }: WrittenSpec['model'],
  add: (path: Path, message: string) => void,
): void {
  if (!dialect) return;
  const at = ['model', 'dialect'];
  if (!(DIALECTS as readonly string[]).includes(dialect.name)) {
    add([...at, 'name'], `no dialect "${dialect.name}"${didYouMean(dialect.name, DIALECTS)}`);
    return;
  }
  if (from === undefined && dialect.name !== 'gradus') {
    add(
      [...at, 'name'],
      `a model from scratch speaks gradus, with a tokenizer of its own: leave it out, or name a checkpoint in model.from that speaks ${dialect.name}`,
    );
  }
  const readBy: Record<'thinking' | 'date' | 'tool' | 'argument', readonly string[]> = {
    thinking: DIALECTS.filter((name) => name !== 'gradus'),
    date: DIALECTS.filter((name) => name !== 'gradus'),
    tool: ['search-r1', 'retool'],
    argument: ['search-r1', 'retool'],
  };
  for (const [field, names] of Object.entries(readBy)) {
    if (dialect[field as keyof typeof readBy] !== undefined && !names.includes(dialect.name)) {
      add([...at, field], `does nothing for ${dialect.name}; ${names.join(', ')} read it`);
    }
  }
}

function modelOf(model: WrittenSpec['model']): ParsedSpec['model'] {
  const { from, dialect } = model;
  if (from === undefined) return { kind: 'scratch', shape: shapeOf(model) };
  const [run, step] = from.split('@');
  return {
    kind: 'from',
    run: run!,
    step: step === undefined ? null : Number(step),
    // Its name has been checked; fields that are absent stay absent.
    ...(dialect && { dialect: Object.fromEntries(present(dialect)) as unknown as DialectSpec }),
  };
}

function shapeOf(model: WrittenSpec['model']): ModelSpec {
  const given = present(model).filter(([field]) => field in MODEL_DEFAULTS);
  return { ...MODEL_DEFAULTS, ...Object.fromEntries(given) };
}

const present = (written: object): [string, unknown][] =>
  Object.entries(written).filter(([, value]) => value !== undefined);

const armsOf = (tasks: WrittenTasks): Arm[] =>
  tasks.flatMap(({ environment, levels }) => levels.map((level) => ({ environment, level })));

/** The dearest rung that can judge every candidate: steps wait for it, and no budget ends it. */
const whatAllCanHave = (rungs: NonNullable<WrittenSpec['verification']>['rungs']): string =>
  rungs.findLast(({ wait, budget }, i) => i === 0 || (wait && Object.keys(budget).length === 0))!.verifier;

function verificationOf(
  { verification, stages }: WrittenSpec,
  environments: ReadonlyMap<string, SpecEnvironment>,
): VerificationSpec | undefined {
  if (!verification) return undefined;
  // All environments have them; where tiers differ, those of the first arm count.
  const { verifiers } = environments.get(stages[0]!.tasks[0]!.environment)!;
  const tierOf = (name: string) => verifiers.find((verifier) => verifier.name === name)!.tier;
  return {
    ...verification,
    evaluateBy: verification.evaluateBy ?? whatAllCanHave(verification.rungs),
    rungs: verification.rungs.map((rung) => ({ ...rung, tier: tierOf(rung.verifier) })),
  };
}

function normalize(
  written: WrittenSpec,
  run: string,
  environments: ReadonlyMap<string, SpecEnvironment>,
): ParsedSpec {
  const verification = verificationOf(written, environments);
  const [lowest] = verification?.rungs ?? [];
  const { warmStart, evaluation } = written;
  return {
    run: written.run ?? run,
    seed: written.seed,
    model: modelOf(written.model),
    ...(written.model.lora && { lora: written.model.lora }),
    learner: written.learner,
    sampling: written.sampling,
    reward: {
      ...written.reward,
      ...(lowest && { ladder: { verifier: lowest.verifier, passAtLeast: lowest.passAtLeast } }),
    },
    ...(verification && { verification }),
    warmStart: warmStart
      ? {
          arms: armsOf(warmStart.tasks),
          minibatch: warmStart.minibatch,
          updatesPerRound: warmStart.updatesPerRound,
          maxRounds: warmStart.maxRounds,
          optimizer: warmStart.optimizer,
          graduation: {
            successAtLeast: warmStart.graduation.successAtLeast,
            tasksPerArm: warmStart.graduation.tasksPerLevel,
          },
        }
      : null,
    stages: written.stages.map(({ tasks, budgets, ...stage }) => ({
      ...stage,
      ...(budgets && { budgets }),
      arms: armsOf(tasks),
    })),
    evaluation: {
      arms: armsOf(evaluation.tasks),
      tasks: evaluation.count,
      confidence: evaluation.confidence,
    },
    retention: written.retention,
  };
}
