import path from 'node:path';
import { describe } from 'vitest';
import { actsOf } from '../../core/episode/acts.ts';
import type { EpisodeSession, Observation, ToolCall, Turn } from '../../core/episode/episode.ts';
import type { Split, TaskRef } from '../../core/refs.ts';
import type { Environment, Task } from '../../environments/contract.ts';
import { hostedHere } from '../../environments/host/hosted-environment.ts';
import { findPythonEnvironment, nameOfRequirements } from '../../infra/python-environment.ts';

/** Tests against the real packages of a folder of environments/; where they are not set up, it says so and skips them. */
export async function withPackages(folder: string, tests: () => void): Promise<void> {
  const file = path.resolve('environments', folder, 'requirements.txt');
  const found = await findPythonEnvironment(nameOfRequirements(file), file);
  const how = `npm run setup:python ${folder}`;
  if (!found) console.warn(`SKIPPED: the tests of environments/${folder} need its packages: ${how}`);
  describe.skipIf(!found)(found ? folder : `${folder} (skipped: ${how})`, tests);
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

export interface Played {
  observations: Observation[];
  ended: EpisodeSession['ended'];
  scores: (number | null)[];
}

let episodes = 0;

/** Plays calls as a rollout does, and has it judged; before each of the calls `lostBefore` its session is lost. */
export async function play(
  environment: Environment,
  ref: TaskRef,
  calls: readonly ToolCall[],
  lostBefore: readonly number[] = [],
): Promise<Played> {
  const { signal } = new AbortController();
  let hosted = hostedHere(environment);
  const id = `run/rl/1/0/${++episodes}`;
  const { tools: own } = await environment.task(ref);
  const tools = own ? hostedHere({ ...environment, tools: own }).tools : hosted.tools;
  const turns: Turn[] = [];
  let kept: EpisodeSession | undefined;
  const session = () => ({ ref, id, acts: actsOf(turns, tools), kept });
  for (const [n, call] of calls.entries()) {
    // Sessions are known by their environment's name: under another one nothing is found, and the calls are made again.
    if (lostBefore.includes(n)) hosted = hostedHere({ ...environment, name: `${environment.name} ${n}` });
    const context = { idempotencyKey: `${id}/${n}`, attempt: 1, signal, session: session() };
    const { observation, session: after } = await hosted.call(call, context, tools);
    kept = after ?? kept;
    delete observation.seconds;
    turns.push({ text: '', action: { kind: 'call', call }, observation } as Turn);
    if (observation.done) break;
  }
  const end = { answer: null, by: 'environment' as const };
  const ended = await hosted.end(session(), end, { signal });
  const episode = { turns, status: { kind: 'ended' as const }, session: { ...kept, ended } };
  const names = environment.verifiers.map(({ name }) => name);
  const [said] = await hosted.verdicts(names, [{ ref, episode }], { signal });
  if (said instanceof Error) throw said;
  return {
    observations: turns.map(({ observation }) => observation!),
    ended,
    scores: said!.map(({ score }) => score),
  };
}
