import { ROUNDING } from '../../core/algorithms/advantage.ts';
import type { TruncatedRule } from '../../core/episode/outcome.ts';
import { deviationOf, isRounding, meanOf } from '../../core/statistics/standardized.ts';
import type { EpisodeRow } from './episode-rows.ts';

/** The samples of a task that are compared with each other. */
export interface ComparedSamples {
  /** The group that they are in; of a tree that grew in several, the one that it began with. */
  group: number;
  rows: EpisodeRow[];
  /** Of the rewards that training may use. */
  mean: number | null;
  /** Of the sample (n − 1), 0 where it is one of rounding; null for fewer than two rewards. */
  deviation: number | null;
  /** Whether the batch has an advantage of one of them; where its method gives none, whether their rewards differ. */
  taught: boolean;
}

/**
 * The rows of a step by what advantages compare. `greedy`: the method compares with a greedy sample of each task, which
 * lies in a group of its own and is no group that could teach.
 */
export function comparedSamples(
  rows: readonly EpisodeRow[],
  truncated: TruncatedRule,
  { greedy = false }: { greedy?: boolean } = {},
): ComparedSamples[] {
  const by = new Map<string, EpisodeRow[]>();
  const roots = new Map<string, string>();
  for (const row of rows) {
    const task = taskOf(row);
    const own = `${row.group} ${task}`;
    // What branched off is compared with what it branched off from, in whichever group that is.
    const key = row.inheritedTokens > 0 ? (roots.get(task) ?? own) : own;
    if (!roots.has(task)) roots.set(task, own);
    const some = by.get(key);
    if (some) some.push(row);
    else by.set(key, [row]);
  }
  const hasAdvantages = rows.some(({ advantage }) => advantage !== null);
  const compared = [...by.values()].filter(({ length }) => !greedy || length > 1);
  return compared.map((some) => {
    const rewards = some.flatMap(({ reward, outcome }) =>
      reward === null || (outcome === 'truncated' && truncated === 'mask') ? [] : [reward],
    );
    const spread = deviationOf(rewards);
    const deviation = rewards.length < 2 ? null : isRounding(spread) ? 0 : spread;
    return {
      group: some[0]!.group,
      rows: some,
      mean: rewards.length === 0 ? null : meanOf(rewards),
      deviation,
      taught: hasAdvantages
        ? some.some(({ advantage }) => advantage !== null && Math.abs(advantage) > ROUNDING)
        : deviation !== null && deviation > 0,
    };
  });
}

export const taskOf = ({
  environment,
  level,
  split,
  index,
}: Pick<EpisodeRow, 'environment' | 'level' | 'split' | 'index'>): string =>
  `${environment} level ${level}, ${split} ${index}`;
