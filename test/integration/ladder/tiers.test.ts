import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { VerdictRequest } from '../../../core/ladder/requests.ts';
import { ids, QUEUES } from '../../../core/names.ts';
import { startLadderInstallation } from '../../support/ladder-installation.ts';
import type { LadderInstallation } from '../../support/ladder-installation.ts';
import { until } from '../../support/run-client.ts';

// Verdicts that are asked for by hand, without a run, of workers whose tiers have limits of their own.

const RATE = 5;
let installation: LadderInstallation;
beforeAll(async () => {
  installation = await startLadderInstallation({
    processes: [['orchestrator', 'verifier'], ['simulation'], ['high-fidelity']],
    env: {
      GRADUS_TIER_CONCURRENCY: 'simulation=2,high-fidelity=16',
      GRADUS_TIER_RATE: `high-fidelity=${RATE}`,
    },
  });
}, 600_000);
afterEach(() => installation.releaseAll());
afterAll(() => installation?.remove());

/** Asks a verifier about so many subjects; gives the ids of the workflows. */
function askFor(
  verifier: string,
  tier: 'simulation' | 'high-fidelity',
  count: number,
  limits: Partial<VerdictRequest['limits']> = {},
  first = 0,
): Promise<string[]> {
  const asks = Array.from({ length: count }, (_, n): VerdictRequest => {
    const i = first + n;
    const digest = i.toString(16).padStart(64, '0');
    const subject = { expected: i, value: i };
    return {
      request: { format: 'gradus.verify/1', verifier, version: '1', digest, subject },
      environment: 'calculator-ladder',
      cost: { seconds: 0.01, usd: 0.01 },
      limits: { timeoutSeconds: 600, heartbeatSeconds: 30, maxAttempts: 5, ...limits },
      served: { by: 'queue', queue: QUEUES[tier] },
    };
  });
  return Promise.all(
    asks.map(async (ask) => {
      const workflowId = ids.verdict(ask.request);
      await installation.runs.client.workflow.signalWithStart('verdict', {
        workflowId,
        taskQueue: QUEUES.orchestrator,
        args: [ask],
        signal: 'verdictWanted',
        signalArgs: ['nobody'],
      });
      return workflowId;
    }),
  );
}

const done = (workflows: readonly string[]): Promise<unknown> =>
  Promise.all(workflows.map((id) => installation.runs.client.workflow.getHandle(id).result()));

test('a tier computes no more at once than its own concurrency allows', async () => {
  const { runs, hold } = installation;
  const release = await hold('near');
  const asked = await askFor('near', 'simulation', 6);
  // The other tier has room for all that it is asked, and is asked later.
  const letOthersGo = await hold('exact');
  const others = await askFor('exact', 'high-fidelity', 6);
  const started = async (workflows: readonly string[]): Promise<number> => {
    const pending = await Promise.all(workflows.map((id) => runs.pending(id, 'verifySubject')));
    return pending.filter((one) => typeof one !== 'string' && one.started).length;
  };
  await until(
    async () => ((await started(others)) === 6 && (await started(asked)) === 2) || undefined,
    300_000,
    () => 'the other tier has not begun all of its six, or this one not two',
  );
  // And begins no more, though others are asked meanwhile.
  expect(await started(asked)).toBe(2);
  await letOthersGo();
  await release();
  await done([...asked, ...others]);
  expect(await installation.computed('near')).toHaveLength(6);
});

test('a tier begins no more computations a second than its own rate allows', async () => {
  const count = 4 * RATE;
  const before = (await installation.computed('exact')).length;
  await done(await askFor('exact', 'high-fidelity', count, {}, 100));
  const computed = (await installation.computed('exact')).slice(before);
  const starts = computed.map(({ start }) => start).toSorted((a, b) => a - b);
  expect(starts).toHaveLength(count);
  // A second's worth may begin at once.
  expect(starts.at(-1)! - starts[0]!).toBeGreaterThan(((count - RATE) / RATE) * 1000 * 0.8);
});

test('attempts are repeated as often as the verifier says, and what they were lost for is no verdict', async () => {
  const { runs, store, computed } = installation;
  // Fails twice, and has two attempts.
  const [lost] = await askFor('frail', 'simulation', 1, { maxAttempts: 2 });
  await done([lost!]);
  const { events } = await runs.client.workflow.getHandle(lost!).fetchHistory();
  const results = (events ?? []).flatMap(
    ({ activityTaskCompletedEventAttributes: task }) => task?.result?.payloads ?? [],
  );
  expect(JSON.parse(Buffer.from(results.at(-1)!.data!).toString())).toMatchObject({
    answer: { kind: 'abstained', type: 'lost', spent: { seconds: 0, usd: 0 } },
    lost: { attempts: 2, reason: expect.stringContaining('attempt 2 came to nothing') as string },
  });
  expect(await computed('frail')).toEqual([]);
  expect(await store.list('verdicts/frail/')).toEqual([]);
  // Asked again it is computed: nothing was kept.
  await done(await askFor('frail', 'simulation', 1, { maxAttempts: 2 }));
  expect(await computed('frail')).toHaveLength(1);
});
