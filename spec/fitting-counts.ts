import type { SpecEnvironments } from '../core/schema/check.ts';
import type { WrittenSpec } from '../core/schema/curriculum.ts';
import { inside } from '../core/schema/strict.ts';
import type { Path } from '../core/schema/strict.ts';
import { mostTasks } from '../core/schema/tasks.ts';

/**
 * The spec with counts of held-out and test tasks that nobody wrote lowered to what its environments have: a small
 * environment needs no numbers of its own. What was written stays as it is, and so does a count of which there is no task:
 * both are refused where they cannot be met.
 */
export function withFittingCounts(
  written: unknown,
  spec: WrittenSpec,
  environments: SpecEnvironments,
): WrittenSpec {
  const fitting = (path: Path, asked: Parameters<typeof mostTasks>[0], usual: number): number => {
    if (path.reduce(inside, written) !== undefined) return usual;
    const most = mostTasks(asked, environments);
    return most > 0 ? Math.min(usual, most) : usual;
  };
  const stages = spec.stages.map((stage, s): WrittenSpec['stages'][number] => {
    const { tasks } = stage;
    const at: Path = ['stages', s, 'graduation'];
    const heldout = { tasks, split: 'heldout' } as const;
    if (stage.kind === 'reward') return stage;
    if (stage.kind === 'supervised') {
      const { graduation } = stage;
      const tasksPerLevel = fitting(
        [...at, 'tasksPerLevel'],
        { ...heldout, of: 'each' },
        graduation.tasksPerLevel,
      );
      return { ...stage, graduation: { ...graduation, tasksPerLevel } };
    }
    const { graduation } = stage;
    const count = fitting([...at, 'tasks'], { ...heldout, of: 'all' }, graduation.tasks);
    return { ...stage, graduation: { ...graduation, tasks: count } };
  });
  const { evaluation } = spec;
  const asked = { tasks: evaluation.tasks, split: 'test', of: 'all' } as const;
  const count = fitting(['evaluation', 'count'], asked, evaluation.count);
  return { ...spec, stages, evaluation: { ...evaluation, count } };
}
