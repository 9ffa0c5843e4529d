import type { StoredStep } from '../store/training/step-facts.ts';
import { readSteps } from '../store/training/step-facts.ts';
import { rate } from '../core/statistics/intervals.ts';
import { total } from '../core/training/stage-policy.ts';
import { builtInEnvironments } from '../environments/families/index.ts';
import { inThisProcess } from '../environments/host/hosted-environment.ts';
import { plainRun } from '../test/support/plain-run.ts';
import { tinySpec } from '../test/support/tiny-spec.ts';
import { benchRowsOf } from './bench.ts';
import type { Bench } from './bench.ts';
import { withEngine } from './installations.ts';

/** The defaults of `graduation.enough`. */
const DEFAULTS = { loss: 0.02, format: 0.9, diversity: 0.2 };

/**
 * When the defaults of `graduation.enough` would have ended a warm start, and what it was like then and much later; run by
 * run with another seed, in a plain process, with a model of some ten thousand parameters.
 */
export const enoughBench: Bench = async function* (options) {
  const { quick, say } = options;
  const rounds = quick ? 6 : 16;
  const seen: { ended: StoredStep | undefined; last: StoredStep }[] = [];
  for (let seed = 1; seed <= (options.runs ?? 3); seed++) {
    const steps = await withEngine(options, async (engine) => {
      const environments = inThisProcess(builtInEnvironments);
      const running = plainRun(specOf(seed, rounds), { ...engine, environments, run: 'enough' });
      // No goal is reached, so that all rounds are seen; a plain run has nobody to ask what then.
      await running.catch((error: Error) => {
        if (!error.message.includes('cannot ask a person')) throw error;
      });
      return readSteps(engine.store, 'enough');
    });
    for (const step of steps) say(`seed ${seed}, round ${step.stageStep}: ${shown(step)}`);
    seen.push({ ended: steps.find(isEnough), last: steps.at(-1)! });
  }
  const row = benchRowsOf('enough');
  const ended = seen.flatMap((one) => one.ended ?? []);
  yield row(`seeds of ${seen.length} that the defaults ended within ${rounds} rounds`, 'seeds', 'more', [
    ended.length,
  ]);
  const then = seen.flatMap((one) => (one.ended ? [one.ended] : []));
  if (then.length > 0) {
    yield row(
      'round at which they ended it',
      'rounds',
      'less',
      then.map((step) => step.stageStep),
    );
    for (const [what, of] of Object.entries(FIGURES))
      yield row(`${what} then`, 'share', 'more', then.map(of));
  }
  for (const [what, of] of Object.entries(FIGURES))
    yield row(
      `${what} after ${rounds} rounds`,
      'share',
      'more',
      seen.map(({ last }) => of(last)),
    );
};

const valueOf = (step: StoredStep, name: keyof typeof DEFAULTS): number =>
  step.criteria!.find((one) => one.name === name)?.value ?? NaN;

const FIGURES: Record<string, (step: StoredStep) => number> = {
  success: (step) => rate(total(step.heldOut!.arms)),
  format: (step) => valueOf(step, 'format'),
  diversity: (step) => valueOf(step, 'diversity'),
};

const isEnough = (step: StoredStep): boolean =>
  valueOf(step, 'loss') < DEFAULTS.loss &&
  valueOf(step, 'format') >= DEFAULTS.format &&
  valueOf(step, 'diversity') >= DEFAULTS.diversity;

const shown = (step: StoredStep): string =>
  [
    `loss falls by ${valueOf(step, 'loss').toFixed(4)}`,
    ...Object.entries(FIGURES).map(([name, of]) => `${name} ${of(step).toFixed(3)}`),
    isEnough(step) ? 'enough' : 'not enough',
  ].join(', ');

/** A warm start alone, whose goal is out of reach. */
function specOf(seed: number, maxRounds: number): unknown {
  const tiny = tinySpec();
  const [warmStart, rl] = tiny.stages;
  const enough = { formatAtLeast: 1, distinctAtLeast: 1 };
  const graduation = { successAtLeast: 1, tasksPerLevel: 32, enough };
  return {
    ...tiny,
    seed,
    stages: [
      { ...warmStart, updatesPerRound: 100, maxRounds, optimizer: { learningRate: 0.01 }, graduation },
      rl,
    ],
    evaluation: { ...tiny.evaluation, count: 8 },
  };
}
