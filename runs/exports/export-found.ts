import { createWriteStream } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { RewardSpec } from '../../core/schema/reward.ts';
import type { CallOptions, ObjectStore } from '../../store/objects/object-store.ts';
import type { EpisodeIndex } from '../find/episode-index.ts';
import { componentsOf, rowsOfStep } from '../episodes/episode-rows.ts';
import type { EpisodeRow, RowOptions } from '../episodes/episode-rows.ts';
import { trajectoriesOf } from '../find/found-episodes.ts';
import type { FoundInStep } from '../find/found-episodes.ts';
import { stepFolder } from '../episodes/group-at.ts';
import { atifFile, atifOf } from './atif.ts';
import { messagesLine } from './messages.ts';
import { writeParquet } from './parquet.ts';

// What was found, read again where it lies: as it was sampled and judged, a few groups in memory at a time.

/** Conversations, a line each; each piece ends with a line. */
export async function* messageLines(
  store: ObjectStore,
  { run, reward }: Pick<EpisodeIndex, 'run' | 'reward'>,
  found: readonly FoundInStep[],
  options: CallOptions & { damaged?: string[] } = {},
): AsyncGenerator<string> {
  for await (const episodes of trajectoriesOf(store, run, found, options)) {
    yield episodes.map((episode) => `${messagesLine(episode, reward)}\n`).join('');
  }
}

/** Writes them as one file. Returns how many there were. */
export async function writeMessages(
  file: string,
  ...found: Parameters<typeof messageLines>
): Promise<number> {
  let written = 0;
  await pipeline(messageLines(...found), count, createWriteStream(`${file}.begun`));
  await rename(`${file}.begun`, file);
  return written;

  async function* count(pieces: AsyncIterable<string>): AsyncGenerator<string> {
    for await (const piece of pieces) {
      written += piece.split('\n').length - 1;
      yield piece;
    }
  }
}

/** A file of ATIF for every episode. */
export async function* atifFiles(
  store: ObjectStore,
  { run, reward }: Pick<EpisodeIndex, 'run' | 'reward'>,
  found: readonly FoundInStep[],
  options: CallOptions & { damaged?: string[] } = {},
): AsyncGenerator<{ name: string; text: string }> {
  for await (const episodes of trajectoriesOf(store, run, found, options)) {
    for (const episode of episodes) {
      yield { name: atifFile(episode.place), text: `${JSON.stringify(atifOf(episode, reward))}\n` };
    }
  }
}

/** Writes them into a folder. Returns how many there were. */
export async function writeAtif(folder: string, ...found: Parameters<typeof atifFiles>): Promise<number> {
  await mkdir(folder, { recursive: true });
  let written = 0;
  for await (const { name, text } of atifFiles(...found)) {
    const file = path.join(folder, name);
    await writeFile(`${file}.begun`, text);
    await rename(`${file}.begun`, file);
    written++;
  }
  return written;
}

/** Writes rows of numbers as one Parquet file. Returns how many there were. */
export function writeFoundParquet(
  file: string,
  store: ObjectStore,
  { run, reward }: { run: string; reward: RewardSpec },
  found: readonly FoundInStep[],
  options: RowOptions = {},
): Promise<number> {
  return writeParquet(file, componentsOf(reward), rows());

  async function* rows(): AsyncGenerator<EpisodeRow[]> {
    for (const { stage, step, groups } of found) {
      const wanted = new Map(groups.map(({ group, episodes }) => [group, new Set(episodes)]));
      const all = await rowsOfStep(store, run, stepFolder(run, stage, step), reward, options);
      yield all.filter(({ group, episode }) => wanted.get(group)?.has(episode));
    }
  }
}
