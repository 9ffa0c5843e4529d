import type { Client } from '@temporalio/client';
import { QUEUES } from '../../core/names.ts';
import { inParallel } from '../../store/in-parallel.ts';
import { millisOf, secondsOf } from './temporal-values.ts';

/** A task queue, who serves it, and what lies in it. */
export interface Queue {
  name: string;
  /** `workflows` of the one that runs are started on; activities are served apart from them. */
  kind: 'workflows' | 'activities';
  /** Workers that have asked for work within the last minutes, the latest first. */
  pollers: { identity: string; lastSeen: number | null }[];
  /** Tasks that nobody has taken, about so many, and the age of the oldest, seconds; null where the server does not say. */
  backlog: { tasks: number; seconds: number } | null;
}

/** Queues that are asked about; each worker with sessions of its own has one. */
const MOST = 64;
const KINDS = { workflows: 1, activities: 2 } as const;

/** The queues of Gradus, and others that were seen. */
export function readQueues(temporal: Client, seen: readonly string[]): Promise<Queue[]> {
  const names = [...new Set([...Object.values(QUEUES), ...seen.toSorted()])].slice(0, MOST);
  const asked = names.map((name) => ({ name, kind: 'activities' as const }));
  return inParallel([{ name: QUEUES.orchestrator, kind: 'workflows' as const }, ...asked], (queue) =>
    readQueue(temporal, queue),
  );
}

async function readQueue(temporal: Client, { name, kind }: Pick<Queue, 'name' | 'kind'>): Promise<Queue> {
  const { pollers, stats } = await temporal.workflowService.describeTaskQueue({
    namespace: temporal.options.namespace,
    taskQueue: { name },
    taskQueueType: KINDS[kind],
    reportStats: true,
  });
  return {
    name,
    kind,
    pollers: latest(
      (pollers ?? []).map(({ identity, lastAccessTime }) => ({
        identity: identity ?? '',
        lastSeen: millisOf(lastAccessTime),
      })),
    ),
    backlog: stats
      ? {
          tasks: Number(stats.approximateBacklogCount ?? 0),
          seconds: secondsOf(stats.approximateBacklogAge),
        }
      : null,
  };
}

/** A worker asks at several places: it is one. */
function latest(pollers: Queue['pollers']): Queue['pollers'] {
  const all = new Map<string, number | null>();
  for (const { identity, lastSeen } of pollers) {
    all.set(identity, Math.max(all.get(identity) ?? 0, lastSeen ?? 0) || null);
  }
  return [...all]
    .map(([identity, lastSeen]) => ({ identity, lastSeen }))
    .toSorted((a, b) => (b.lastSeen ?? 0) - (a.lastSeen ?? 0));
}
