import { z } from 'zod';
import { armName } from '../../core/names.ts';
import type { Split } from '../../core/refs.ts';
import type { Refuse, SpecEnvironments } from '../check.ts';
import { givenName } from '../../core/fields.ts';
import { didYouMean } from '../strict.ts';
import type { Path } from '../strict.ts';

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
  .max(64, 'has at most 64 entries');

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

/** Names that nobody has, and arms that are named twice. */
export function checkTasks(
  tasks: WrittenTasks,
  path: Path,
  environments: SpecEnvironments,
  refuse: Refuse,
): void {
  const named = new Set<string>();
  tasks.forEach((entry, i) => {
    const environment = environments.get(entry.environment);
    if (!environment) {
      const valid = [...environments.keys()];
      const nearest = didYouMean(entry.environment, valid);
      refuse([...path, i, 'environment'], `no environment "${entry.environment}"${nearest}`);
      return;
    }
    entry.levels.forEach((level, l) => {
      if (!environment.levels.includes(level)) {
        const valid = environment.levels.join(', ');
        refuse([...path, i, 'levels', l], `"${entry.environment}" has no level ${level}; valid: ${valid}`);
      }
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

/**
 * Whether there are so many other tasks, in equal parts over the arms: a measurement in which a task counts twice claims
 * more confidence than it has. `path` is that of the count.
 */
export function checkCount(
  { tasks, split, count }: { tasks: WrittenTasks; split: Split; count: number },
  path: Path,
  environments: SpecEnvironments,
  refuse: Refuse,
): void {
  const arms = armsOf(tasks);
  arms.forEach(({ environment, level }, i) => {
    const known = environments.get(environment);
    if (!known?.levels.includes(level)) return;
    const asked = Math.ceil((count - i) / arms.length);
    const there = known.taskCount(split, level);
    if (asked > there) {
      refuse(path, `asks for ${asked} ${split} tasks of ${environment}:${level}, which has ${there}`);
    }
  });
}
