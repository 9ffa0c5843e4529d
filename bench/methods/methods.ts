import { pairedDifference, benchRowsOf, chosenNames } from '../bench.ts';
import type { Bench, BenchOptions, BenchRow } from '../bench.ts';
import { LONG, METHOD_CASES, quickly } from './cases.ts';
import { GROUPS, unitOf } from './claims.ts';
import { compareMethods } from './comparison.ts';
import type { Trial } from './trial.ts';

/** Those that were asked for by name. Throws what `chosenNames` throws. */
function chosen<T extends { name: string }>(all: readonly T[], options: BenchOptions): T[] {
  const names = chosenNames(
    all.map(({ name }) => name),
    options,
  );
  return all.filter(({ name }) => names.includes(name));
}

/** The first seeds from 11 on. */
const seedsOf = ({ runs, quick }: BenchOptions): number[] =>
  Array.from({ length: runs ?? (quick ? 1 : 3) }, (_, run) => 11 + run);

function paired(bench: string, name: string, unit: string, ours: number[], anchor: number[]): BenchRow {
  const row = benchRowsOf(bench)(name, unit, 'more', ours, anchor);
  return { ...row, difference: pairedDifference(ours, anchor) };
}

/**
 * Whether every method learns: from the same warm start, with as many sampled tokens, refills and greedy samples
 * included. `ours` is success on unseen tasks after, `anchor` before; medians over the seeds.
 */
export const methodsBench: Bench = async function* (options) {
  const names = chosen(METHOD_CASES, options).map(({ name }) => name);
  const comparison = {
    name: 'methods',
    title: 'What each method learns',
    setting: options.quick ? quickly(LONG) : LONG,
    cases: METHOD_CASES,
    only: new Set(names),
    seeds: seedsOf(options),
    panels: METHOD_CASES.map(({ name }) => ({
      heading: name,
      cases: name === 'grpo' ? [name] : [name, 'grpo'],
    })),
  };
  const trials = await compareMethods(comparison, options);
  for (const name of names) {
    const own = trials.filter((trial) => trial.case === name);
    const at = (place: number): number[] => own.map(({ points }) => points.at(place)!.success);
    yield paired('methods', name, 'success', at(-1), at(0));
  }
};

/**
 * What is said of training agents (shared texts and the papers that they cite), at equal sampled tokens from the same warm
 * start: `ours` is success with what is recommended, `anchor` without, or what else a claim measures; medians over the seeds, and their paired difference.
 */
export const claimsBench: Bench = async function* (options) {
  const all = GROUPS.flatMap((group) => group.claims);
  const wanted = chosen(all, options);
  for (const group of GROUPS) {
    const claims = group.claims.filter((claim) => wanted.includes(claim));
    if (claims.length === 0) continue;
    const comparison = {
      ...group,
      setting: options.quick ? quickly(group.setting) : group.setting,
      only: new Set(claims.flatMap(({ ours, anchor }) => [ours, anchor])),
      seeds: seedsOf(options),
      panels: group.claims.map(({ claim, ours, anchor }) => ({ heading: claim, cases: [ours, anchor] })),
    };
    const trials = await compareMethods(comparison, options);
    const of = (name: string, measure: (trial: Trial) => number): number[] =>
      trials.filter((trial) => trial.case === name).map(measure);
    for (const one of claims) {
      const [ours, anchor] = [of(one.ours, one.measure), of(one.anchor, one.measure)];
      yield paired('claims', one.claim, unitOf(one), ours, anchor);
    }
  }
};
