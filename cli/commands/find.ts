import { Command } from 'commander';
import { counted } from '../../core/counted.ts';
import { decimals } from '../../core/decimals.ts';
import { rate } from '../../core/statistics/intervals.ts';
import type { Proportion } from '../../core/statistics/intervals.ts';
import { assertRun } from '../../store/run/find-run.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { EpisodeIndex } from '../../runs/find/episode-index.ts';
import { searchEpisodes as findEpisodes } from '../../runs/find/find.ts';
import type { Findings } from '../../runs/find/find.ts';
import { QUERY_NAMES, readQuery } from '../../runs/find/find-query.ts';
import type { Query } from '../../runs/find/find-query.ts';
import { WORDS } from '../../runs/find/find-words.ts';
import { placeOf } from '../../runs/episodes/place.ts';
import { withConnectionFlags, withStoreOf } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { wholeFrom } from '../numbers.ts';
import { note, noteDamage, print } from '../printable.ts';
import { printJson } from '../json/print-json.ts';

interface FindOptions extends ConnectionOptions {
  limit: number;
  json?: boolean;
  parquet?: string;
  jsonl?: string;
  atif?: string;
  [word: string]: unknown;
}

/** `gradus find RUN`: episodes by what became of them. */
export function findCommand(): Command {
  const command = withConnectionFlags(new Command('find')).argument('<run>');
  // A word may be said again where several of its kind are looked for.
  const more = (one: string, all: string[] = []): string[] => [...all, one];
  for (const name of QUERY_NAMES) command.option(`--${name} <${name.split('-').at(-1)!}>`, WORDS[name], more);
  return command
    .option('--limit <n>', 'rows to print', wholeFrom(1), 20)
    .option(
      '--json',
      'the facts of each episode, one JSON object a line; with --text where it stands in each',
    )
    .option('--parquet <file>', 'writes a Parquet file with a row for each episode')
    .option('--jsonl <file>', "writes the episodes as conversations in the form of OpenAI's API, one a line")
    .option('--atif <dir>', 'writes each episode as an ATIF trajectory, in a file of its own')
    .action((run: string, options: FindOptions) =>
      withStoreOf(options, async (store) => {
        const query = queryIn(options);
        await assertRun(store, run);
        const index = await EpisodeIndex.open(store, run);
        noteDamage(index.damaged);
        await index.build({ progress: sayProgress('steps', '; later searches reuse them') });
        if (await exported(store, index, query, options)) return;
        if (query.text !== undefined) await printHits(store, index, { ...query, text: query.text }, options);
        else printRows(run, await findEpisodes(index, query, { limit: options.limit }), options);
      }),
    );
}

function queryIn(options: FindOptions): Query {
  const words: Record<string, string[]> = {};
  for (const name of QUERY_NAMES) {
    const given = options[name.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase())];
    if (given !== undefined) words[name] = given as string[];
  }
  return readQuery(words);
}

/** Said where it takes a while, and seldom. */
function sayProgress(what: string, more = ''): (at: { done: number; total: number }) => void {
  let reported = performance.now();
  return ({ done, total }) => {
    if (performance.now() - reported < 2000) return;
    reported = performance.now();
    note(`${done} of ${total} ${what} are read${more}`);
  };
}

async function exported(
  store: ObjectStore,
  index: EpisodeIndex,
  query: Query,
  { parquet, jsonl, atif }: FindOptions,
): Promise<boolean> {
  if (parquet === undefined && jsonl === undefined && atif === undefined) return false;
  const { foundIn } = await import('../../runs/find/found-episodes.ts');
  const { foundWithText } = await import('../../runs/find/search-text.ts');
  const { writeAtif, writeFoundParquet, writeMessages } = await import('../../runs/exports/export-found.ts');
  const damaged: string[] = [];
  const { text } = query;
  const found =
    text === undefined
      ? await foundIn(index, query, { damaged })
      : await foundWithText(store, index, { ...query, text }, { damaged, progress: sayProgress('groups') });
  noteDamage(damaged);
  // Damaged since the facts were read, or beside what was found.
  const unread: string[] = [];
  const all = [store, index, found, { damaged: unread }] as const;
  if (parquet !== undefined) note(`${await writeFoundParquet(parquet, ...all)} episodes in ${parquet}`);
  if (jsonl !== undefined) note(`${await writeMessages(jsonl, ...all)} conversations in ${jsonl}`);
  if (atif !== undefined) note(`${await writeAtif(atif, ...all)} trajectories in ${atif}`);
  noteDamage(unread.filter((message) => !damaged.some((known) => known.endsWith(message))));
  return true;
}

async function printHits(
  store: ObjectStore,
  index: EpisodeIndex,
  query: Query & { text: string },
  { limit, json }: FindOptions,
): Promise<void> {
  const { searchText } = await import('../../runs/find/search-text.ts');
  const damaged: string[] = [];
  let hits = 0;
  let isMore = false;
  const known = { successes: 0, trials: 0 };
  for await (const hit of searchText(store, index, query, { damaged })) {
    isMore = hits === limit;
    if (isMore) break;
    hits++;
    const { place, where, turn, before, text, after, success } = hit;
    known.trials += Number(success !== null);
    known.successes += Number(success === true);
    const at = turn === null ? where : `${where} ${turn}`;
    const line = `${placeOf(place)}  ${at}: ${`${before}»${text}«${after}`.replaceAll(/\s+/g, ' ')}`;
    if (json === true) printJson('find-text', { ...hit, place: placeOf(place) });
    else print(line);
  }
  noteDamage(damaged);
  if (json === true) return;
  const many = counted(hits, 'episode');
  note(`${isMore ? `the first ${many} of the run` : many}${solvedText(known)}`);
  if (isMore) note('--limit shows more, --parquet, --jsonl and --atif write all');
}

const solvedText = (success: Proportion): string =>
  success.trials === 0 ? '' : `, ${(100 * rate(success)).toFixed(1)} % solved`;

function printRows(run: string, findings: Findings, { json, limit }: FindOptions): void {
  const { rows, total, success, meanReward, there, unreadable, unknown } = findings;
  for (const message of unknown) note(message);
  noteDamage(unreadable.map(({ key, message }) => `${key}: ${message}`));
  if (json === true) {
    for (const row of rows) printJson('find', { place: placeOf({ run, ...row }), ...row });
    return;
  }
  for (const row of rows) {
    const { environment, level, split, index, hinted, outcome, reason, reward } = row;
    const { sampledTokens, turns, errors } = row;
    const mistakes = Object.entries(errors).map(([kind, count]) => counted(count, kind.replace('-', ' ')));
    print(
      [
        placeOf({ run, ...row }),
        `${environment}:${level} ${split} ${index}${hinted ? ', with a hint' : ''}`,
        reason === null ? outcome : `${outcome} (${reason})`,
        `reward ${reward === null ? '–' : decimals(reward, 3)}`,
        `${sampledTokens} tokens`,
        counted(turns, 'turn'),
        ...mistakes,
      ].join('  '),
    );
  }
  const mean = meanReward === null ? '' : `, mean reward ${decimals(meanReward, 3)}`;
  note(`${total} of ${there.episodes} episodes${solvedText(success)}${mean}`);
  if (total > limit)
    note(`the first ${limit} are shown; --limit shows more, --parquet, --jsonl and --atif write all`);
}
