import type { CallOptions } from '../../store/objects/object-store.ts';
import type { EpisodeIndex, IndexedStep, Scanned } from './episode-index.ts';
import { suggestion } from '../../core/schema/strict.ts';
import { ANY_ERROR, successOf } from './find-query.ts';
import type { Query, Sort } from './find-query.ts';
import type { FactsInStep, PackedFacts } from './packed-facts.ts';

export interface Found extends FactsInStep {
  stage: string;
  step: number;
}

export interface Findings extends Scanned {
  /** Those of the page that was asked for. */
  rows: Found[];
  /** All that match. */
  total: number;
  /** Of those that match and have one. */
  meanReward: number | null;
  /** Of those that match, as far as it is known. */
  success: { successes: number; trials: number };
  /** Everything that was looked at, whether it matches or not: what there is to ask for. */
  there: { episodes: number; environments: string[]; levels: number[]; tools: string[] };
  /** Names that were asked for and that there are not, with those that there are, in sentences. */
  unknown: string[];
}

/** Rows of a page that comes after so many are not looked for: whoever goes so far asks for less, or exports. */
export const LAST_ROW = 10_000;

/** The episodes of a run that match, sorted; equal ones stand in the order of the run. */
export async function find(
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
  const sums = { total: 0, episodes: 0, reward: 0, rewarded: 0, successes: 0, trials: 0 };
  const key = KEYS[query.sort];
  const scanned = await index.scan(({ stage, step, facts }) => {
    noteWhatIsThere(facts, there);
    sums.episodes += facts.length;
    for (const row of matchingRows(query, { stage, step, facts })) {
      sums.total++;
      const reward = facts.reals.reward[row]!;
      if (!Number.isNaN(reward)) {
        sums.reward += reward;
        sums.rewarded++;
      }
      const success = facts.flags.success[row]!;
      if (success >= 0) sums.trials++;
      if (success > 0) sums.successes++;
      first.offer(key(row, facts, step), () => ({ stage, step, ...facts.facts(row) }));
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

/** What `matches` says of each row, column by column. */
export function* matchingRows(
  query: Query,
  { stage, step, facts }: Pick<IndexedStep, 'stage' | 'step' | 'facts'>,
): Generator<number> {
  const { 'from-step': from = -Infinity, 'to-step': to = Infinity } = query;
  if (step < from || step > to || (query.stage.length > 0 && !query.stage.includes(stage))) return;
  const tests = testsOf(query, facts);
  rows: for (let row = 0; row < facts.length; row++) {
    for (const test of tests) if (!test(row)) continue rows;
    yield row;
  }
}

type Test = (row: number) => boolean;

function testsOf(query: Query, facts: PackedFacts): Test[] {
  const tests: Test[] = [];
  const amongTexts = (name: 'environment' | 'split' | 'outcome', wanted: readonly string[]): void => {
    if (wanted.length === 0) return;
    const { values, codes } = facts.texts[name];
    const passes = values.map((value) => value !== null && wanted.includes(value));
    tests.push((row) => passes[codes[row]!]!);
  };
  const within = (numbers: Int32Array | Float64Array, least?: number, most?: number): void => {
    if (least === undefined && most === undefined) return;
    const [low, high] = [least ?? -Infinity, most ?? Infinity];
    tests.push((row) => numbers[row]! >= low && numbers[row]! <= high);
  };
  amongTexts('environment', query.environment);
  amongTexts('split', query.split);
  amongTexts('outcome', query.outcome);
  if (query.level.length > 0) tests.push((row) => query.level.includes(facts.reals.level[row]!));
  if (query.success.length > 0) {
    const passes = [null, false, true].map((success) => query.success.includes(successOf(success)));
    tests.push((row) => passes[facts.flags.success[row]! + 1]!);
  }
  within(facts.reals.reward, query['min-reward'], query['max-reward']);
  within(facts.integers.sampledTokens, query['min-tokens'], query['max-tokens']);
  within(facts.integers.turns, query['min-turns'], query['max-turns']);
  const { tool, error } = query;
  if (tool !== undefined) tests.push((row) => facts.entry('tools', row, tool) !== undefined);
  if (error === ANY_ERROR) {
    const { offsets } = facts.maps.errors;
    tests.push((row) => offsets[row + 1]! > offsets[row]!);
  } else if (error !== undefined) tests.push((row) => facts.entry('errors', row, error) !== undefined);
  return tests;
}

/** What rows are sorted by; NaN where it is not known. */
const KEYS: Record<Sort, (row: number, facts: PackedFacts, step: number) => number> = {
  step: (_, __, step) => step,
  reward: (row, { reals }) => reals.reward[row]!,
  tokens: (row, { integers }) => integers.sampledTokens[row]!,
  turns: (row, { integers }) => integers.turns[row]!,
  'tool-seconds': (row, { reals }) => reals.toolSeconds[row]!,
};

function noteWhatIsThere(
  { texts, reals, maps }: PackedFacts,
  there: { environments: Set<string>; levels: Set<number>; tools: Set<string> },
): void {
  for (const value of texts.environment.values) if (value !== null) there.environments.add(value);
  for (const level of reals.level) there.levels.add(level);
  for (const name of maps.tools.names) there.tools.add(name);
}

/** The first so many of any number, whatever order they come in; those whose key is not known come last. */
class First {
  private readonly most: number;
  private readonly descending: boolean;
  private kept: { key: number; came: number; row: Found }[] = [];
  private offered = 0;
  /** Once there are enough: what does not come before this is not kept. */
  private worst: { key: number; came: number } | null = null;

  constructor(most: number, descending: boolean) {
    this.most = most;
    this.descending = descending;
  }

  offer(key: number, row: () => Found): void {
    const at = { key, came: this.offered++ };
    if (this.worst && this.compare(at, this.worst) >= 0) return;
    this.kept.push({ ...at, row: row() });
    if (this.kept.length >= 2 * this.most) this.cut();
  }

  sorted(): Found[] {
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
