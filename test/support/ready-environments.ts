import path from 'node:path';
import { describe } from 'vitest';
import type { EpisodeSession, Observation, ToolCall, Turn } from '../../core/episode/episode.ts';
import type { Split, TaskRef } from '../../core/refs.ts';
import type { Environment, Task } from '../../environments/contract/environment.ts';
import { hostedHere } from '../../environments/host/hosted-environment.ts';
import { findPythonEnvironment, nameOfRequirements } from '../../infra/python-environment.ts';
import { playCalls } from './play-calls.ts';

const howToSetUp = (folder: string): string => `npm run setup:python ${folder}`;

/** Whether the packages of a folder of environments/connectors/packages are set up; where they are not, it says so. */
export async function hasPackages(folder: string): Promise<boolean> {
  const file = path.resolve('environments/connectors/packages', folder, 'requirements.txt');
  const found = await findPythonEnvironment(nameOfRequirements(file), file);
  if (!found) console.warn(`SKIPPED: tests of ${folder} need its packages: ${howToSetUp(folder)}`);
  return found !== undefined;
}

/** Tests against the real packages of a folder of environments/; where they are not set up, it says so and skips them. */
export async function withPackages(folder: string, tests: () => void): Promise<void> {
  const found = await hasPackages(folder);
  describe.skipIf(!found)(found ? folder : `${folder} (skipped: ${howToSetUp(folder)})`, tests);
}

export const SPLITS: readonly Split[] = ['train', 'heldout', 'test'];

/** The first tasks of each split. */
export async function tasksOf(
  environment: Environment,
  level: number,
  count: number,
): Promise<{ split: Split; task: Task }[]> {
  const refs = SPLITS.flatMap((split) =>
    Array.from({ length: Math.min(count, environment.taskCount(split, level)) }, (_, index) => ({
      environment: environment.name,
      split,
      level,
      index,
    })),
  );
  return Promise.all(refs.map(async (ref) => ({ split: ref.split, task: await environment.task(ref) })));
}

/** What the environment's expert calls. */
export async function expertCalls(environment: Environment, task: Task): Promise<ToolCall[]> {
  const { turns } = await environment.demonstrate!(task, 0);
  return turns.flatMap(({ call }) => (call ? [call] : []));
}

export interface Played {
  observations: Observation[];
  ended: EpisodeSession['ended'];
  scores: (number | null)[];
}

/** Plays calls as a rollout does, and has it judged; before each of the calls `lostBefore` its session is lost. */
export async function play(
  environment: Environment,
  ref: TaskRef,
  calls: readonly ToolCall[],
  lostBefore: readonly number[] = [],
): Promise<Played> {
  const { signal } = new AbortController();
  const { observations, kept, ended } = await playCalls(environment, calls, { task: ref, moves: lostBefore });
  const turns = observations.map(
    (observation, n) => ({ text: '', action: { kind: 'call', call: calls[n] }, observation }) as Turn,
  );
  const episode = { turns, status: { kind: 'ended' as const }, session: { ...kept, ended } };
  const names = environment.verifiers.map(({ name }) => name);
  const [said] = await hostedHere(environment).verdicts(names, [{ ref, episode }], { signal });
  if (said instanceof Error) throw said;
  return {
    observations,
    ended,
    scores: said!.map(({ score }) => score),
  };
}
