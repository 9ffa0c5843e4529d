import { Context } from '@temporalio/activity';
import { WorkflowIdConflictPolicy } from '@temporalio/client';
import type { Client } from '@temporalio/client';
import { defineSearchAttributeKey } from '@temporalio/common';
import type { SearchAttributePair } from '@temporalio/common';
import { ids, QUEUES } from '../../core/names.ts';
import type { VerdictRequest, StoredVerdict, RequestVerdicts } from '../../core/ladder/requests.ts';
import type { TierAnswer, TierRequest } from '../../core/tier-contract.ts';
import type { Durable } from '../durable.ts';
import { lostAttempts } from './lost-attempts.ts';
import { wishes } from '../../store/ladder/ladder-codecs.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { findVerdict, putVerdict } from './verdict-cache.ts';

export type VerdictActivities = Durable<ReturnType<typeof createVerdicts>>;

/** Names and types as `SEARCH_ATTRIBUTES` in core/names.ts registers them. */
const RUN = defineSearchAttributeKey('GradusRun', 'KEYWORD');
const VERIFIER = defineSearchAttributeKey('GradusVerifier', 'KEYWORD');

const attributesOf = ({ run, request }: VerdictRequest): SearchAttributePair[] => [
  { key: VERIFIER, value: request.verifier },
  ...(run === undefined ? [] : [{ key: RUN, value: run }]),
];

export function createVerdicts({ store, client }: { store: ObjectStore; client: Client }) {
  return {
    /** Sees to it that each of these is computed, once however many ask: a workflow for each, named after it. */
    async requestVerdicts(
      { asks, from, to, requester }: RequestVerdicts,
      signal: AbortSignal,
    ): Promise<void> {
      const all = await store.read(asks, wishes, { signal });
      const wanted = all.slice(from, to);
      // Damage to a verdict that is kept is met here, where there is a run to ask: the workflow of a verdict has none.
      await Promise.all(wanted.map(({ ask }) => findVerdict(store, ask.request, { signal })));
      await Promise.all(
        wanted.map(({ ask }) =>
          client.workflow.signalWithStart(ask.served.by === 'people' ? 'review' : 'verdict', {
            workflowId: ids.verdict(ask.request),
            taskQueue: QUEUES.orchestrator,
            args: [ask],
            signal: 'verdictWanted',
            signalArgs: [requester],
            workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
            // Of who asks first: they are set where a workflow starts.
            typedSearchAttributes: attributesOf(ask),
          }),
        ),
      );
    },

    recallVerdict: (request: TierRequest, signal: AbortSignal): Promise<TierAnswer | null> =>
      findVerdict(store, request, { signal }),

    /** Keeps an answer, and says what was lost on the way to it. */
    keepVerdict: async (
      { request, answer }: { request: TierRequest; answer: TierAnswer },
      signal: AbortSignal,
    ): Promise<StoredVerdict> => {
      const { workflowId, runId } = Context.current().info.workflowExecution!;
      const { events } = await client.workflow.getHandle(workflowId, runId).fetchHistory();
      return {
        answer: await putVerdict(store, request, answer, signal),
        lost: lostAttempts(events ?? [], 'verifySubject'),
      };
    },
  };
}
