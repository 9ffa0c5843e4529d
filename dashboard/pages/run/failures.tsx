import type { FC } from 'hono/jsx';
import type { FailureFacts } from '../../../core/training/step-facts.ts';
import type { StoredStep } from '../../../store/training/step-facts.ts';
import { MadeByStage } from './made-by-stage.tsx';

const COLUMNS: [keyof Omit<FailureFacts, 'source'>, string][] = [
  ['failed', 'failed tasks'],
  ['variations', 'variations'],
  ['kept', 'kept'],
  ['tooHard', 'too hard'],
  ['tooEasy', 'too easy'],
  ['unsolved', 'not solved'],
  ['setAside', 'held out'],
  ['known', 'duplicates'],
  ['none', 'not made'],
];

/** What stages have made of failed tasks: how many variations, and what the others were left out by. */
export const TasksFromFailures: FC<{ steps: readonly StoredStep[] }> = ({ steps }) => {
  const stages = new Map<string, FailureFacts>();
  for (const { stage, rollout } of steps) if (rollout?.fromFailures) stages.set(stage, rollout.fromFailures);
  return (
    <MadeByStage
      heading="Tasks from failures"
      caption="Variations of tasks that an earlier stage failed: kept, or left out, by reason"
      columns={COLUMNS}
      stages={stages}
    />
  );
};
