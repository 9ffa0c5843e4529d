import { createHash } from 'node:crypto';
import { GradusError } from '../../core/errors.ts';
import { canonicalJson } from '../../core/json/canonical-json.ts';
import type { Json } from '../../core/json/json.ts';
import type { Split, TaskRef } from '../../core/refs.ts';
import type { Environment, Task } from '../contract/environment.ts';
import { environmentFactsOf, errorText } from '../host/facts.ts';
import type { EnvironmentFacts, TaskCount } from '../host/facts.ts';
import { hostedHere } from '../host/hosted-environment.ts';
import type { HostedEnvironment } from '../host/hosted-environment.ts';
import type { Resume } from '../contract/session.ts';
import { playDemonstration, playTogether } from './play.ts';
import type { Demonstrated, Played } from './play.ts';
import { OnceCalls } from './once-calls.ts';
import type { OnceCallCounts } from './once-calls.ts';
import type { Begin } from './play-through.ts';

// What one process sees of an environment. Another one must see the same.

export const SPLITS: readonly Split[] = ['train', 'heldout', 'test'];

/** Why something could not be had. */
export interface Broken {
  broken: string;
}

/** A task, by SHA-256 of all that it is but its coordinates. */
export interface SeenTask {
  split: Split;
  level: number;
  index: number;
  task: { digest: string; prompt: string } | Broken;
}

/** What became of one of the expert's ways through a task. */
export interface SeenPlay {
  level: number;
  index: number;
  way: number;
  play: Played | Broken;
}

/** What `present()` made of a subject; null where all is well. */
export interface SeenPresentation {
  verifier: string;
  level: number;
  index: number;
  broken: string | null;
}

export interface Seen {
  name: string;
  levels: readonly number[];
  tools: readonly string[];
  verifiers: readonly string[];
  /** How its sessions come back; null without sessions. */
  resume: Resume | null;
  demonstrates: boolean;
  counts: Record<Split, Record<number, TaskCount>>;
  tasks: SeenTask[];
  plays: SeenPlay[];
  /** How episodes that were played by turns disturbed each other. */
  disturbed: Broken[];
  presentations: SeenPresentation[];
  onceCalls: OnceCallCounts;
  /** Tools of sessions that must be called once only. */
  onceOfSession: readonly string[];
}

/** What is done once may take as long as loading a module. */
export const LOAD_SECONDS = 60;

/** Tasks of each level that the expert is asked about, and how many ways through each. */
const DEMONSTRATED = 8;
const WAYS = 2;

export interface LookOptions {
  /** Tasks of each split and level that are looked at, at most. */
  most: number;
  /** Whether tools that must be called once only are called. */
  performOnce: boolean;
}

/** Looks at tasks of an environment that is prepared, and plays the expert's way through some of them. */
export async function look(
  environment: Environment,
  file: string,
  { most, performOnce }: LookOptions,
  begin: Begin,
): Promise<Seen> {
  await begin({ what: 'taskCount()', seconds: LOAD_SECONDS });
  const facts = environmentFactsOf(environment, file);
  const { name, levels, tools, verifiers, taskCounts, resume, demonstrates } = facts;
  const tasks: SeenTask[] = [];
  for (const split of SPLITS) {
    for (const level of levels) {
      for (const index of spread(taskCounts[split][level]!, most)) {
        await begin({ what: `task(${split}, level ${level}, index ${index})` });
        const task = await orBroken(() => seeTask(environment, { environment: name, split, level, index }));
        tasks.push({ split, level, index, task });
      }
    }
  }
  const once = new OnceCalls(performOnce);
  const played = demonstrates
    ? await playAll(environment, facts, begin, once)
    : { plays: [], disturbed: [], presentations: [] };
  const names = (all: readonly { name: string }[]): string[] => all.map((one) => one.name);
  return {
    name,
    levels,
    resume,
    demonstrates,
    tools: names(tools),
    verifiers: names(verifiers),
    counts: taskCounts,
    tasks,
    ...played,
    onceCalls: once.counts,
    onceOfSession: names(tools.filter(({ effect, ofSession }) => effect === 'once' && ofSession)),
  };
}

/** Plays what the expert shows, level by level: each episode alone, then two by turns. */
async function playAll(
  environment: Environment,
  { name, levels, taskCounts }: EnvironmentFacts,
  begin: Begin,
  once: OnceCalls,
): Promise<Pick<Seen, 'plays' | 'disturbed' | 'presentations'>> {
  const hosted = hostedHere(environment);
  const plays: SeenPlay[] = [];
  const disturbed: Broken[] = [];
  const presentations: SeenPresentation[] = [];
  for (const level of levels) {
    const alone: Demonstrated[] = [];
    for (const index of spread(taskCounts.train[level]!, DEMONSTRATED)) {
      const ref: TaskRef = { environment: name, split: 'train', level, index };
      for (let way = 0; way < WAYS; way++) {
        let late = false;
        const play = await orBroken(async () => {
          try {
            const { played, demonstrated } = await playDemonstration(hosted, ref, way, begin, once);
            alone.push(demonstrated);
            return played;
          } catch (error) {
            late = error instanceof GradusError && error.type === 'timeout';
            throw error;
          }
        });
        plays.push({ level, index, way, play });
        // Waiting for the same with every task would take all the time, and what was found would not be heard.
        if (late) return { plays, disturbed, presentations };
      }
    }
    const together = await orBroken(() => playTogether(hosted, alone, begin));
    if (together) disturbed.push(together);
    const whole = alone.find(({ episode }) => !episode.unjudged);
    if (whole) presentations.push(...(await presentAll(hosted, whole, begin)));
  }
  return { plays, disturbed, presentations };
}

/** What people are shown of the subjects of an episode, one for each verifier that has any. */
async function presentAll(
  hosted: HostedEnvironment,
  { playing: { ref }, episode }: Demonstrated,
  begin: Begin,
): Promise<SeenPresentation[]> {
  if (!hosted.presents) return [];
  const { signal } = new AbortController();
  const seen: SeenPresentation[] = [];
  for (const { name, served } of hosted.verifiers) {
    if (!served) continue;
    await begin({ what: `the subject() of ${name}` });
    const [subject] = await hosted.subjects(name, [{ ref, episode }], { signal });
    if (subject === null || subject === undefined || subject instanceof GradusError) continue;
    await begin({ what: `present() of a subject of ${name}` });
    const shown = await orBroken(() => hosted.present(subject, { signal }));
    seen.push({
      verifier: name,
      level: ref.level,
      index: ref.index,
      broken: 'broken' in shown ? shown.broken : null,
    });
  }
  return seen;
}

/** Indices: the first, the last, and others evenly between (of one the first); of an endless row the first ones. */
export function spread(count: TaskCount, most: number): number[] {
  if (typeof count === 'object') return [];
  if (count === 'endless' || count <= most) {
    return Array.from({ length: count === 'endless' ? most : count }, (_, i) => i);
  }
  return Array.from({ length: most }, (_, i) => Math.round((i * (count - 1)) / Math.max(1, most - 1)));
}

async function orBroken<T>(work: () => Promise<T>): Promise<T | Broken> {
  try {
    return await work();
  } catch (error) {
    return { broken: errorText(error) };
  }
}

/** Longest beginning of a prompt that a finding shows, in characters. */
const SHOWN = 80;

async function seeTask(environment: Environment, ref: TaskRef): Promise<{ digest: string; prompt: string }> {
  const { ref: _, ...task }: Task = await environment.task(ref);
  if (typeof task.prompt !== 'string') throw new Error('gave a task whose prompt is no text');
  // As it is stored and passed between processes.
  const json = canonicalJson(JSON.parse(JSON.stringify(task)) as Json);
  return { digest: createHash('sha256').update(json).digest('hex'), prompt: task.prompt.slice(0, SHOWN) };
}
