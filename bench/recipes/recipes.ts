import type { CurriculumResult } from '../../core/training/curriculum.ts';
import { percent } from '../../core/percent.ts';
import type { EvaluationResult } from '../../core/requests/evaluation.ts';
import type { StepFacts } from '../../core/training/step-facts.ts';
import { FIGURES, figureOf, successOf } from '../../recipes/figure.ts';
import type { Report } from '../../recipes/figure.ts';
import { readRecipe, recipeNames } from '../../recipes/recipe.ts';
import type { Claim, Recipe } from '../../recipes/recipe.ts';
import { judge } from '../../recipes/verdict.ts';
import { ObjectStore } from '../../store/objects/object-store.ts';
import { readSteps } from '../../store/training/step-facts.ts';
import { benchRowsOf, chosenNames, pairedDifference } from '../bench.ts';
import type { Bench, BenchOptions, BenchRow } from '../bench.ts';
import type { WorkerSettings } from '../../workers/settings.ts';
import { durableRun, withInstallation } from '../installations.ts';
import { quickly } from './quickly.ts';

/** What a run has come to, and the steps of its last stage. */
type Ended = CurriculumResult & { lastStage: StepFacts[] };
type Results = ReadonlyMap<string, Ended>;

/**
 * Published systems, each with its controls, on servers of their own for every seed: whether the direction that a paper
 * claims is there. `ours` is the treatment and `anchor` its control, medians over the seeds, with the paired difference.
 * A seed that has ended has a row of its own for each claim, so that a measurement which is stopped keeps it.
 */
export const recipesBench: Bench = async function* (options) {
  const names = chosenNames(await recipeNames(), options);
  const runs = options.runs ?? (options.quick ? 1 : 3);
  const seeds = options.seeds ?? Array.from({ length: runs }, (_, run) => 11 + run);
  for (const name of names) {
    const recipe = await readRecipe(name);
    const all: Results[] = [];
    for (const seed of seeds) {
      const results = await runRecipe(recipe, seed, options);
      all.push(results);
      for (const claim of recipe.claims) yield { ...rowOf(recipe, claim, [results]), seed };
    }
    for (const claim of recipe.claims) yield rowOf(recipe, claim, all);
  }
};

/** All runs of a recipe, in order, in a store of their own: later ones begin with what earlier ones have learnt. */
function runRecipe(recipe: Recipe, seed: number, options: BenchOptions): Promise<Results> {
  return withInstallation(options, async (client, { settings }) => {
    const results = new Map<string, Ended>();
    for (const { name, spec } of recipe.runs) {
      const written = { ...(options.quick ? quickly(spec) : spec), seed };
      const { result, seconds } = await durableRun(client, written, { ...options, workflowId: name });
      options.say(
        `${recipe.name}, seed ${seed}, ${name}: ${percent(successOf(reportOf(result.after)))}, ${seconds.toFixed(0)} s`,
      );
      results.set(name, { ...result, lastStage: await stepsOfLastStage(settings, name) });
    }
    return results;
  });
}

async function stepsOfLastStage({ store: at }: WorkerSettings, run: string): Promise<StepFacts[]> {
  const store = await ObjectStore.connect(at);
  try {
    const steps = await readSteps(store, run);
    return steps.filter(({ stage }) => stage === steps.at(-1)!.stage);
  } finally {
    store.close();
  }
}

/** What a claim comes to over the seeds, each with the results of its runs by their names. */
function rowOf(
  recipe: Recipe,
  { claim, treatment, control, figure }: Claim,
  all: readonly Results[],
): BenchRow {
  const sides = (of: (report: Report) => number): Sides => ({
    ours: all.map((results) => of(after(results.get(treatment)!))),
    anchor: all.map((results) =>
      of(control === undefined ? reportOf(results.get(treatment)!.before) : after(results.get(control)!)),
    ),
  });
  const compared = `${recipe.name}: ${treatment} vs ${control ?? 'before RL'}`;
  const success = sides((report) => successOf(report, figure?.successOf));
  if (!figure) return { ...compare(compared, 'success', 'higher', success), claim };
  const { name, direction } = figure;
  const { ours, anchor, difference } = compare(compared, 'success', 'higher', success);
  return {
    ...compare(
      compared,
      FIGURES[name].unit,
      direction,
      sides((report) => figureOf(report, name)),
    ),
    claim,
    success: { ours, anchor, difference: difference ?? null },
  };
}

interface Sides {
  ours: number[];
  anchor: number[];
}

const compare = (
  compared: string,
  unit: string,
  direction: 'higher' | 'lower',
  { ours, anchor }: Sides,
): BenchRow => ({
  ...benchRowsOf('recipes')(compared, unit, direction === 'higher' ? 'more' : 'less', ours, anchor),
  difference: pairedDifference(ours, anchor),
  verdict: judge(ours, anchor, direction).verdict,
});

const after = ({ after, lastStage }: Ended): Report => ({ ...reportOf(after), lastStage });

function reportOf(report: EvaluationResult | null): Report {
  if (report === null) throw new Error('the run ended without its report');
  return report;
}
