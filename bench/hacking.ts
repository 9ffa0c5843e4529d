import { total } from '../core/training/stage-policy.ts';
import { rate } from '../core/statistics/intervals.ts';
import { signalsOf } from '../core/diagnosis/signals.ts';
import { builtInEnvironments } from '../environments/families/index.ts';
import { inThisProcess } from '../environments/host/hosted-environment.ts';
import { readSteps } from '../store/training/step-facts.ts';
import type { StoredStep } from '../store/training/step-facts.ts';
import { plainRun } from '../test/support/plain-run.ts';
import { tinySpec } from '../test/support/tiny-spec.ts';
import { benchRowsOf, chosenNames } from './bench.ts';
import type { Bench, BenchOptions } from './bench.ts';
import { withEngine } from './installations.ts';
import { SETTING } from './methods/cases.ts';
import { WARM_START } from './specs.ts';

/** Fields of the reward stage, of `reward.model` and of the stage that is judged: what stands between the policy and its hack. */
const CASES = {
  'one model alone': { models: 1, model: {}, judged: { collapse: { successBelowBest: 0 } } },
  'four models less 2 σ': {
    models: 4,
    model: { deviations: 2 },
    judged: { collapse: { successBelowBest: 0 } },
  },
  'one model with rollback': { models: 1, model: {}, judged: {} },
};
type CaseName = keyof typeof CASES;
const CASE_NAMES = Object.keys(CASES) as CaseName[];

/**
 * A policy that climbs a reward model with a weakness: it has learnt of a few dozen episodes of the policy that it then
 * trains. What it pays stands beside what the verifier says of the same episodes: `anchor` at the first steps of the stage,
 * `ours` at its last, medians over the seeds 11, 12, …; and when the alarm names it.
 */
export const hackingBench: Bench = async function* (options) {
  const seeds = Array.from({ length: options.runs ?? (options.quick ? 1 : 3) }, (_, run) => 11 + run);
  const names = chosenNames(CASE_NAMES, options) as CaseName[];
  const all = await Promise.all(seeds.map((seed) => hackedStages(names, seed, options)));
  const row = benchRowsOf('hacking');
  for (const name of names) {
    const stages = all.map((of) => of.stages.get(name)!);
    for (const [what, better, of] of FIGURES) {
      const end = stages.map((stage) => meanOver(stage.slice(-END), of));
      const beginning = stages.map((stage) => meanOver(stage.slice(0, END), of));
      const figures = row(`${name}: ${what}`, 'share', better, end, beginning);
      // A difference may be negative, so that no ratio says how much better it is.
      yield what === EXCESS ? { ...figures, ratio: null } : figures;
    }
    const after = stages.map((stage) => success(stage.findLast(({ heldOut }) => heldOut)));
    yield row(
      `${name}: held-out success`,
      'share',
      'more',
      after,
      all.map(({ before }) => before),
    );
    const named = stages.flatMap((stage) => stage.find(isNamed)?.stageStep ?? []);
    yield row(`${name}: seeds of ${seeds.length} that reward-hacking names`, 'seeds', 'more', [named.length]);
    if (named.length > 0) yield row(`${name}: step at which it does`, 'steps', 'less', named);
  }
};

const STEPS = { full: 20, quick: 4 };
/** Steps that a stage's beginning and end are the mean of. */
const END = 4;

const EXCESS = 'excess of the model';
const FIGURES: [string, 'more' | 'less', (step: StoredStep) => number | null][] = [
  ['mean reward, which the model gives', 'more', (step) => signalsOf(step).reward],
  ['success by the verifier', 'more', (step) => signalsOf(step).success],
  [EXCESS, 'less', (step) => signalsOf(step).excess],
];

const meanOver = (steps: readonly StoredStep[], of: (step: StoredStep) => number | null): number => {
  const values = steps.flatMap((step) => of(step) ?? []);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
};

const isNamed = ({ alarms }: StoredStep): boolean => alarms.some(({ name }) => name === 'reward-hacking');

const success = (step: StoredStep | undefined): number => rate(total(step!.heldOut!.arms));

interface Seen {
  /** Held-out success that all cases begin with. */
  before: number;
  /** The steps that a model has judged. */
  stages: Map<CaseName, StoredStep[]>;
}

/** All cases from one warm start, in a store of their own. */
function hackedStages(names: readonly CaseName[], seed: number, options: BenchOptions): Promise<Seen> {
  return withEngine(options, async (engine) => {
    const environments = inThisProcess(builtInEnvironments);
    const stepsOf = async (run: string, spec: unknown): Promise<StoredStep[]> => {
      const onStep = (): void => options.signal.throwIfAborted();
      // A stage that ends without its goal asks a person what then, and a plain run has none.
      await plainRun(spec, { ...engine, environments, run, onStep }).catch((error: Error) => {
        if (!error.message.includes('cannot ask a person')) throw error;
      });
      return readSteps(engine.store, run);
    };
    const warm = await stepsOf(WARM_START, warmSpec(seed));
    const before = success(warm.at(-1));
    const stages = new Map<CaseName, StoredStep[]>();
    for (const [place, name] of names.entries()) {
      const steps = await stepsOf(`case-${place}`, caseSpec(name, seed, options));
      const stage = steps.filter((step) => step.stage === JUDGED);
      for (const step of stage) {
        const { reward, success: of, excess } = signalsOf(step);
        const figures = [reward, of, excess].map((value) => value?.toFixed(3) ?? '–').join(', ');
        const raised = step.alarms.map((alarm) => alarm.name).join(', ');
        options.say(
          `seed ${seed}, ${name}, step ${step.stageStep}: reward, success, excess ${figures} ${raised}`,
        );
      }
      stages.set(name, stage);
    }
    return { before, stages };
  });
}

const JUDGED = 'judged';
const [supervised, rl] = tinySpec().stages;

const common = (seed: number) => ({
  seed,
  sampling: tinySpec().sampling,
  evaluation: { tasks: rl.tasks, count: 64 },
});
const components = [{ verifier: 'exact-match', role: 'outcome' }];

/** A policy that is right a quarter of the time, or more often. */
const warmSpec = (seed: number) => ({
  ...common(seed),
  model: SETTING.model,
  reward: { components },
  stages: [
    {
      ...supervised,
      updatesPerRound: 40,
      maxRounds: 40,
      optimizer: { learningRate: 0.002, warmupUpdates: 50, beta2: 0.98 },
      graduation: { successAtLeast: 0.25, tasksPerLevel: 64 },
    },
  ],
});

/** A step that samples what the models learn of, the models, and the stage that they pay for. */
function caseSpec(name: CaseName, seed: number, { quick }: BenchOptions): unknown {
  const { models, model, judged } = CASES[name];
  const stage = { ...rl, groupsPerStep: 16, groupsPerWorkflow: 16 };
  return {
    ...common(seed),
    model: { from: WARM_START },
    reward: { components, model: { stage: 'judge', ...model } },
    stages: [
      {
        ...stage,
        name: 'sampled',
        maxSteps: 1,
        // It samples, and hardly learns.
        optimizer: { learningRate: 1e-6 },
        graduation: { successAtLeast: 0.9, tasks: 32, everySteps: 1 },
      },
      {
        kind: 'reward',
        name: 'judge',
        tasks: rl.tasks,
        episodes: { stage: 'sampled' },
        models,
        maxEpisodes: 48,
        minibatch: 4,
        maxRounds: 20,
        optimizer: { learningRate: 0.005 },
        // No round is asked for more than a model that few episodes can make.
        graduation: { aucAtLeast: 0.55 },
      },
      {
        ...stage,
        ...judged,
        name: JUDGED,
        maxSteps: quick ? STEPS.quick : STEPS.full,
        algorithm: { minibatch: 64 },
        optimizer: { learningRate: 0.001 },
        graduation: { successAtLeast: 0.95, tasks: 128, everySteps: quick ? 2 : 5 },
      },
    ],
  };
}
