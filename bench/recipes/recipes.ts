import type { CurriculumResult } from '../../core/training/curriculum.ts';
import { addHowSolved } from '../../core/training/how-solved.ts';
import { total } from '../../core/training/stage-policy.ts';
import { rate } from '../../core/statistics/intervals.ts';
import { percent } from '../../core/percent.ts';
import type { EvaluationResult } from '../../core/requests.ts';
import { readRecipe, recipeNames } from '../../recipes/recipe.ts';
import type { Claim, Figure, Recipe } from '../../recipes/recipe.ts';
import { judge } from '../../recipes/verdict.ts';
import { benchRowsOf, chosenNames, pairedDifference } from '../bench.ts';
import type { Bench, BenchOptions, BenchRow } from '../bench.ts';
import { durableRun, withInstallation } from '../installations.ts';
import { quickly } from './quickly.ts';

type Results = ReadonlyMap<string, CurriculumResult>;

/**
 * Published systems, each with its controls, on servers of their own for every seed: whether the direction that a paper
 * claims is there. `ours` is the treatment and `anchor` its control, medians over the seeds, with the paired difference.
 */
export const recipesBench: Bench = async function* (options) {
  const names = chosenNames(await recipeNames(), options);
  const seeds = Array.from({ length: options.runs ?? (options.quick ? 1 : 3) }, (_, run) => 11 + run);
  for (const name of names) {
    const recipe = await readRecipe(name);
    const all: Results[] = [];
    for (const seed of seeds) all.push(await runRecipe(recipe, seed, options));
    for (const claim of recipe.claims) yield rowOf(recipe, claim, all);
  }
};

/** All runs of a recipe, in order, in a store of their own: later ones begin with what earlier ones have learnt. */
function runRecipe(recipe: Recipe, seed: number, options: BenchOptions): Promise<Results> {
  return withInstallation(options, async (client) => {
    const results = new Map<string, CurriculumResult>();
    for (const { name, spec } of recipe.runs) {
      const written = { ...(options.quick ? quickly(spec) : spec), seed };
      const { result, seconds } = await durableRun(client, written, { ...options, workflowId: name });
      const success = result.after && percent(rate(total(result.after.arms)));
      options.say(`${recipe.name}, seed ${seed}, ${name}: ${success}, ${seconds.toFixed(0)} s`);
      results.set(name, result);
    }
    return results;
  });
}

/** What a claim comes to over the seeds, each with the results of its runs by their names. */
export function rowOf(recipe: Recipe, claim: Claim, all: readonly Results[]): BenchRow {
  const treatment = all.map((results) => figureOf(claim.figure, results.get(claim.treatment)!.after));
  const control = all.map((results) =>
    claim.control === undefined
      ? figureOf(claim.figure, results.get(claim.treatment)!.before)
      : figureOf(claim.figure, results.get(claim.control)!.after),
  );
  const compared = `${recipe.name}: ${claim.treatment} vs ${claim.control ?? 'before RL'}`;
  return {
    ...benchRowsOf('recipes')(compared, claim.figure, claim.better, treatment, control),
    difference: pairedDifference(treatment, control),
    claim: claim.claim,
    verdict: judge(treatment, control, claim.better).verdict,
  };
}

/** Of a report that a run has come to; a share of no calls is 0. */
function figureOf(figure: Figure, report: EvaluationResult | null): number {
  if (report === null) throw new Error('the run ended without its report');
  if (figure === 'success') return rate(total(report.arms));
  const { goodCalls, calls } = addHowSolved(report.conduct ?? []);
  return rate({ successes: goodCalls, trials: calls });
}
