import type { RunView } from '../../runs/overview/run.ts';
import type { Stale } from '../layout.tsx';

/** Which sources of a run's page are away, and as of when it is shown. */
export function staleOf({ execution, progress, steps }: RunView): Stale[] {
  const found: Stale[] = [];
  const temporal = execution.problem ?? null;
  if (temporal !== null)
    found.push({
      source: 'Temporal',
      problem: temporal,
      asOf: progress.value === null ? execution.asOf : progress.asOf,
    });
  else if (progress.problem !== null && execution.value?.closedAt === null) {
    const asOf = progress.value === null ? null : progress.asOf;
    found.push({ source: 'The worker of workflows (queue gradus)', problem: progress.problem, asOf });
  }
  if (steps.problem !== null) found.push({ source: 'The store', problem: steps.problem, asOf: steps.asOf });
  return found;
}
