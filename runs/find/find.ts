import type { CallOptions } from '../../store/objects/object-store.ts';
import type { EpisodeIndex, FactsInStep, Scanned } from './episode-index.ts';
import { suggestion } from '../../core/did-you-mean.ts';
import { matches } from './find-query.ts';
import type { Query, Sort } from './find-query.ts';

interface EpisodeHit extends FactsInStep {
  stage: string;
  step: number;
}

export interface Findings extends Scanned {
  /** Those of the page that was asked for. */
  rows: EpisodeHit[];
  /** All that match. */
  total: number;
  /** Of those that match and have one. */
  meanReward: number | null;
  /** Of those that match, as far as it is known. */
  success: { successes: number; trials: number };
  /** Everything that was looked at, whether it matches or not: what there is to ask for. */
  there: { episodes: number; hinted: number; environments: string[]; levels: number[]; tools: string[] };
  /** Names that were asked for and that there are not, with those that there are, in sentences. */
  unknown: string[];
}

/** Rows of a page that comes after so many are not looked for: whoever goes so far asks for less, or exports. */
export const LAST_ROW = 10_000;

/** The episodes of a run that match, sorted; equal ones stand in the order of the run. */
export async function searchEpisodes(
  index: EpisodeIndex,
  query: Query,
  {
    offset = 0,
    limit = 50,
    ...options
  }: CallOptions & { offset?: number; limit?: number; isAway?: boolean } = {},
): Promise<Findings> {
  const first = new First(Math.min(offset, LAST_ROW) + limit, query.order === 'descending');
  const there = { environments: new Set<string>(), levels: new Set<number>(), tools: new Set<string>() };
  const sums = { total: 0, episodes: 0, hinted: 0, reward: 0, rewarded: 0, successes: 0, trials: 0 };
  const key = KEYS[query.sort];
  const scanned = await index.scan(({ stage, step, facts }) => {
    sums.episodes += facts.length;
    for (const row of facts) {
      if (row.hinted) sums.hinted++;
      there.environments.add(row.environment);
      there.levels.add(row.level);
      for (const tool of Object.keys(row.tools)) there.tools.add(tool);
      if (!matches(query, { stage, step, facts: row })) continue;
      sums.total++;
      if (row.reward !== null) {
        sums.reward += row.reward;
        sums.rewarded++;
      }
      if (row.success !== null) sums.trials++;
      if (row.success === true) sums.successes++;
      first.offer(key(row, step), { stage, step, ...row });
    }
  }, options);
  return {
    ...scanned,
    rows: first.sorted().slice(Math.min(offset, LAST_ROW)),
    total: sums.total,
    meanReward: sums.rewarded === 0 ? null : sums.reward / sums.rewarded,
    success: { successes: sums.successes, trials: sums.trials },
    there: {
      episodes: sums.episodes,
      hinted: sums.hinted,
      environments: [...there.environments].toSorted(),
      levels: [...there.levels].toSorted((a, b) => a - b),
      tools: [...there.tools].toSorted(),
    },
    unknown: [
      ...unknownAmong('stage', query.stage, index.stages),
      // What is not read yet may have others.
      ...(scanned.missing > 0
        ? []
        : [
            ...unknownAmong('environment', query.environment, [...there.environments]),
            ...unknownAmong('tool', query.tool === undefined ? [] : [query.tool], [...there.tools]),
          ]),
    ],
  };
}

/** Of a list in a sentence. */
const MOST_NAMED = 30;

function unknownAmong(what: string, asked: readonly string[], valid: readonly string[]): string[] {
  const there = valid.length === 0 ? 'there is none' : `there are: ${valid.slice(0, MOST_NAMED).join(', ')}`;
  return asked
    .filter((name) => !valid.includes(name))
    .map((name) => `no episode has the ${what} ${JSON.stringify(name)}${suggestion(name, valid)} (${there})`);
}

/** What rows are sorted by; NaN where it is not known. */
const KEYS: Record<Sort, (row: FactsInStep, step: number) => number> = {
  step: (_, step) => step,
  reward: ({ reward }) => reward ?? Number.NaN,
  tokens: ({ sampledTokens }) => sampledTokens,
  turns: ({ turns }) => turns,
  'tool-seconds': ({ toolSeconds }) => toolSeconds,
};

/** The first so many of any number, whatever order they come in; those whose key is not known come last. */
class First {
  private readonly most: number;
  private readonly descending: boolean;
  private kept: { key: number; came: number; row: EpisodeHit }[] = [];
  private offered = 0;
  /** Once there are enough: what does not come before this is not kept. */
  private worst: { key: number; came: number } | null = null;

  constructor(most: number, descending: boolean) {
    this.most = most;
    this.descending = descending;
  }

  offer(key: number, row: EpisodeHit): void {
    const at = { key, came: this.offered++ };
    if (this.worst && this.compare(at, this.worst) >= 0) return;
    this.kept.push({ ...at, row });
    if (this.kept.length >= 2 * this.most) this.cut();
  }

  sorted(): EpisodeHit[] {
    this.cut();
    return this.kept.map(({ row }) => row);
  }

  private cut(): void {
    this.kept = this.kept.toSorted((a, b) => this.compare(a, b)).slice(0, this.most);
    if (this.kept.length === this.most) this.worst = this.kept.at(-1) ?? null;
  }

  private compare(a: { key: number; came: number }, b: { key: number; came: number }): number {
    const unknown = Number(Number.isNaN(a.key)) - Number(Number.isNaN(b.key));
    const byKey = Number.isNaN(a.key) || a.key === b.key ? 0 : a.key < b.key ? -1 : 1;
    return unknown || (this.descending ? -byKey : byKey) || a.came - b.came;
  }
}
