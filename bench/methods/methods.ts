import type { BenchOptions } from '../bench.ts';
import { benchRow, pairedDifference } from '../bench-row.ts';
import type { BenchRow } from '../bench-row.ts';
import { LONG, METHOD_CASES, quickly } from './cases.ts';
import { chosen, compare, seedsOf } from './comparison.ts';

/**
 * Whether every method learns: from the same warm start, with as many sampled tokens, refills and greedy samples
 * included. `ours` is success on unseen tasks after, `anchor` before; medians over the seeds.
 */
export async function* methodsBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const cases = chosen(METHOD_CASES, options);
  const trials = await compare(
    {
      name: 'methods',
      title: 'What each method learns',
      setting: options.quick ? quickly(LONG) : LONG,
      cases: METHOD_CASES,
      only: new Set(cases.map(({ name }) => name)),
      seeds: seedsOf(options),
      panels: METHOD_CASES.map(({ name }) => ({
        heading: name,
        cases: [name, ...(name === 'grpo' ? [] : ['grpo'])],
      })),
    },
    options,
  );
  for (const { name } of cases) {
    const own = trials.filter((trial) => trial.case === name);
    const sides = {
      ours: own.map(({ points }) => points.at(-1)!.success),
      anchor: own.map(({ points }) => points[0]!.success),
    };
    yield {
      ...benchRow({ bench: 'methods', case: name, unit: 'success', better: 'more', ...sides }),
      difference: pairedDifference(sides),
    };
  }
}
