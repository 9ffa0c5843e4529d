import { z } from 'zod';
import { armName } from '../names.ts';
import type { Split } from '../refs.ts';
import type { Refuse, SpecEnvironments } from './check.ts';
import { givenName } from '../fields.ts';
import { commandLine } from '../installation.ts';
import { suggestion } from '../did-you-mean.ts';
import type { Path } from './strict.ts';

export const tasksSchema = z
  .array(
    z.strictObject({
      environment: givenName.describe('Name of an environment that the workers know.'),
      levels: z
        .array(z.int())
        .nonempty()
        .max(256, 'has at most 256 levels')
        .describe('Difficulty levels of that environment.'),
    }),
  )
  .nonempty()
  .max(64, 'has at most 64 entries')
  .describe('Environments and their levels; tasks are drawn among all of them.');

export type WrittenTasks = z.output<typeof tasksSchema>;

/** One kind of task: an environment at a level. Tasks inside a stage are drawn among its arms. */
export interface Arm {
  environment: string;
  level: number;
}

export const armsOf = (tasks: WrittenTasks): Arm[] =>
  tasks.flatMap(({ environment, levels }) => levels.map((level) => ({ environment, level })));

/** A section whose tasks are written out as arms. */
export type WithArms<Section extends { tasks: WrittenTasks }> = Omit<Section, 'tasks'> & { arms: Arm[] };

/** Names that nobody has, of all sections together: what there is, and how one's own is named, is said once. */
export function checkNames(
  sections: readonly { tasks: WrittenTasks; path: Path }[],
  environments: SpecEnvironments,
  refuse: Refuse,
): void {
  let said = false;
  for (const { tasks, path } of sections) {
    tasks.forEach(({ environment: name }, i) => {
      if (environments.has(name)) return;
      const valid = [...environments.keys()];
      const nearest = suggestion(name, valid);
      const remedy = nearest || (said ? '' : `; valid: ${valid.join(', ')}. ${NAMING}`);
      said ||= nearest === '';
      refuse([...path, i, 'environment'], `no environment "${name}"${remedy}`);
    });
  }
}

const NAMING =
  'To use one of your own, name its module in package.json, as ' +
  '"gradus": {"environments": ["./my-environment.ts"]}, or in GRADUS_ENVIRONMENTS, which takes precedence. ' +
  `Where "${commandLine('dev')}" runs, start it again then`;

/** Levels that an environment lacks, and arms that are named twice. Names are checked before. */
export function checkTasks(
  tasks: WrittenTasks,
  path: Path,
  environments: SpecEnvironments,
  refuse: Refuse,
): void {
  const named = new Set<string>();
  tasks.forEach((entry, i) => {
    const environment = environments.get(entry.environment);
    if (!environment) return;
    const missing = entry.levels.filter((level) => !environment.levels.includes(level));
    if (missing.length > 0) {
      const at = missing.length > 1 ? [] : [entry.levels.indexOf(missing[0]!)];
      refuse(
        [...path, i, 'levels', ...at],
        `"${entry.environment}" has no level ${missing.join(', ')}; valid: ${environment.levels.join(', ')}`,
      );
    }
    entry.levels.forEach((level, l) => {
      const arm = armName({ environment: entry.environment, level });
      if (named.has(arm))
        refuse([...path, i, 'levels', l], `${arm} is named twice; its tasks would count twice`);
      named.add(arm);
    });
  });
}

/** Of one evaluation, whose child workflows are all in one history. */
export const MOST_TASKS = 100_000;
export const MEASURED = 'the interval is narrower than anybody needs, and one history holds the measurement';

/** Of a count that nobody wrote. */
export const FEWER = 'Left out, fewer where the environment has fewer.';

/** Whoever lets more be missing measures something else. */
const MOST_UNJUDGED = 0.5;
export const unjudgedSchema = z
  .number()
  .min(0)
  .max(MOST_UNJUDGED)
  .default(0.02)
  .describe(
    "Part of each level's held-out tasks that may stay unjudged; further unjudged tasks count as failures.",
  );

/** Tasks that a section asks a split for: of all arms together in equal parts, or of each one. */
interface Asked {
  tasks: WrittenTasks;
  split: Split;
  of: 'all' | 'each';
}

/** What each arm has, as far as environments and levels are known, and the most that can be asked for on its account. */
function tasksThere({ tasks, split, of }: Asked, environments: SpecEnvironments) {
  const arms = armsOf(tasks);
  return arms.flatMap((arm, i) => {
    const known = environments.get(arm.environment);
    if (!known?.levels.includes(arm.level)) return [];
    const there = known.taskCount(split, arm.level);
    // What is left over where the count cannot be divided falls to the first arms.
    return [{ arm, i, there, most: of === 'each' ? there : there * arms.length + i }];
  });
}

/** The most of a count that no task has to be in twice; Infinity where nothing bounds it. */
export const mostTasks = (asked: Asked, environments: SpecEnvironments): number =>
  Math.min(...tasksThere(asked, environments).map(({ most }) => most));

/**
 * Whether there are so many other tasks: a measurement in which a task counts twice claims more confidence than it has.
 * `path` is that of the count.
 */
export function checkCount(
  { count, ...section }: Asked & { count: number },
  path: Path,
  environments: SpecEnvironments,
  refuse: Refuse,
): void {
  const [scarcest] = tasksThere(section, environments).toSorted((a, b) => a.most - b.most);
  if (!scarcest || count <= scarcest.most) return;
  const { arm, i, there, most } = scarcest;
  const arms = armsOf(section.tasks).length;
  const asked = section.of === 'all' ? Math.ceil((count - i) / arms) : count;
  const remedy =
    there === 0
      ? 'leave the level out, or let it have some'
      : `write at most ${JSON.stringify(String(path.at(-1)))}: ${most}`;
  refuse(path, `asks for ${asked} ${section.split} tasks of ${armName(arm)}, which has ${there}: ${remedy}`);
}
