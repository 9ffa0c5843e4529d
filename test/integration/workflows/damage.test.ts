import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { WorkflowFailedError, WorkflowNotFoundError } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkedJson } from '../../../store/codec.ts';
import { verdictKey } from '../../../store/keys.ts';
import { wishes } from '../../../store/ladder/ladder-codecs.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { putVerdict } from '../../../activities/verification/verdict-cache.ts';
import { createVerdicts } from '../../../activities/verification/verdicts.ts';
import type { OpenQuestion } from '../../../core/question.ts';
import { ids } from '../../../core/names.ts';
import type { BlobRef } from '../../../core/refs.ts';
import { decide, stop } from '../../../workflows/control/messages.ts';
import { digest, hollowActivities } from '../../support/hollow-activities.ts';
import { ladderSpec } from '../../support/ladder-installation.ts';
import { until } from '../../support/run-client.ts';
import { startWorkflowLab } from '../../support/workflow-lab.ts';
import type { WorkflowLab } from '../../support/workflow-lab.ts';
import { DONE } from '../../support/ended.ts';

// Every activity of a run begins by reading an object of its own from the real store, whose bytes on the server's disk
// are damaged or gone. What it does then is no more than what the workflows need to go on.

const ACTIVITIES = [
  'initializeModel',
  'buildDemonstrations',
  'trainStep',
  'advance',
  'dueCalls',
  'resume',
  'gather',
  'callTool',
  'verifyGroup',
  'planAssessment',
  'settleAssessment',
  'planClimb',
  'requestVerdicts',
  'keepLedger',
  'settleClimb',
  'buildBatch',
  'applyRetention',
];

const run = { now: '' };
const keyOf = (name: string): string => `runs/${run.now}/objects/${name}`;
const refs = new Map<string, BlobRef>();
/** Activities that came to their end, in their order. */
let done: string[] = [];

let lab: WorkflowLab;
let store: ObjectStore;

/** The activities by name; each reads its object first. */
function reading(activities: Record<string, (request: never) => unknown>) {
  const all = Object.entries(activities).map(([name, answer]) => [
    name,
    async (request: never): Promise<unknown> => {
      const own = refs.get(keyOf(name));
      if (own) await store.get(own);
      const given = await answer(request);
      if (own) done.push(name);
      return given;
    },
  ]);
  return Object.fromEntries(all) as Record<string, (request: never) => Promise<unknown>>;
}

const objects = checkedJson((json) => json as { reader: string });

beforeAll(async () => {
  lab = await startWorkflowLab(({ runs }) => {
    const { orchestrator, rollout, tool, verifier, learner } = hollowActivities(runs);
    return {
      orchestrator: reading(orchestrator),
      rollout: reading(rollout),
      tool: reading(tool),
      verifier: reading(verifier),
      learner: reading(learner),
    };
  });
  const { cacheDir: _, ...settings } = lab.settings.store;
  store = await ObjectStore.connect(settings);
}, 600_000);
afterAll(async () => {
  store?.close();
  await lab?.stop();
});

const fileOf = (key: string): string => path.join(lab.stateDir, 'object-store', 'objects', 'gradus', key);

/** Damages an object, or puts it back as it was. */
async function flipByte(key: string): Promise<void> {
  const bytes = await readFile(fileOf(key));
  bytes.writeUInt8(bytes.readUInt8(0) ^ 1, 0);
  await writeFile(fileOf(key), bytes);
}

async function start(name: string, damaged: readonly string[]) {
  run.now = name;
  done = [];
  refs.clear();
  for (const one of ACTIVITIES) {
    const kept = await store.putIfAbsent(keyOf(one), objects, { reader: one });
    refs.set(keyOf(one), kept.ref);
  }
  for (const one of damaged) await flipByte(keyOf(one));
  const spec = ladderSpec([{ verifier: 'near', passAtLeast: 0.5, wait: true }], {
    maxSteps: 2,
    groupsPerStep: 2,
  });
  return lab.runs.start(name, { ...spec, verification: { ...spec.verification, evaluateBy: 'near' } });
}

test('whatever object is damaged, the run asks, goes on when it is restored, and does just what it would have done', async () => {
  const alone = await start('alone', []);
  const result = await alone.result();
  const undisturbed = done.toSorted();
  expect(new Set(undisturbed)).toEqual(new Set(ACTIVITIES));

  const handle = await start('damaged', ACTIVITIES);
  const asked: string[] = [];
  let last: OpenQuestion | null = null;
  while (asked.length < ACTIVITIES.length) {
    const { question } = await lab.runs.progress(
      handle,
      (shown) => shown.status === 'waiting' && shown.question!.id !== last?.id,
    );
    last = question;
    const key = question!.reason.match(/runs\/damaged\/objects\/\w+/)?.[0];
    expect(question!.reason).toContain('Restore it');
    const name = key!.slice(key!.lastIndexOf('/') + 1);
    // A group that asks after the others were answered asks anew; what was mended before is not asked about again.
    if (!asked.includes(name)) {
      asked.push(name);
      await flipByte(key!);
    }
    await handle.executeUpdate(decide, { args: ['continue'] });
  }
  expect(asked.toSorted()).toEqual(ACTIVITIES.toSorted());
  const { end, checkpoint: final, steps, stages } = await handle.result();
  expect({ end, checkpoint: final, steps, stages }).toEqual({
    end: DONE,
    checkpoint: result.checkpoint,
    steps: result.steps,
    stages: result.stages,
  });
  expect(done.toSorted()).toEqual(undisturbed);
}, 600_000);

const WARM = { name: 'warm-start', end: 'graduated' };

test.each([
  [
    'buildDemonstrations',
    { steps: 0, stages: [{ name: 'warm-start', end: 'stopped', steps: 0 }], reference: null },
  ],
  ['buildBatch', { stages: [WARM, { name: 'rl', end: 'stopped', steps: 0 }] }],
  ['advance', {}],
  ['settleClimb', { stages: [WARM, { name: 'rl', end: 'stopped', steps: 0 }] }],
  ['settleAssessment', { stages: [WARM], reference: null }],
])(
  'where %s met damage the run is stopped by the answer, with the checkpoint that it has',
  async (name, end) => {
    const handle = await start(`stopped-${name}`, [name]);
    await lab.runs.progress(handle, ({ status }) => status === 'waiting');
    await handle.executeUpdate(decide, { args: ['stop'] });
    expect(await handle.result()).toMatchObject({ end: 'stopped', after: null, ...end });
  },
);

test('the signal to stop ends a run that asks as well; the ladder that it asked for ends, and says what was damaged', async () => {
  const handle = await start('signalled', ['planClimb']);
  await lab.runs.progress(handle, ({ status }) => status === 'waiting');
  await handle.signal(stop);
  expect(await handle.result()).toMatchObject({
    end: 'stopped',
    stages: [WARM, { name: 'rl', end: 'stopped' }],
  });
  const ladder = lab.runs.client.workflow.getHandle(ids.ladder('signalled'));
  const failure = await ladder.result().catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(WorkflowFailedError);
  expect(
    await until(
      async () => (await ladder.describe()).status.name,
      300_000,
      () => 'no status',
    ),
  ).toBe('FAILED');
});

test('a run without a checkpoint that is stopped fails, and says what is damaged', async () => {
  const handle = await start('nothing-yet', ['initializeModel']);
  const { question } = await lab.runs.progress(handle, ({ status }) => status === 'waiting');
  expect(question!.answers).toContainEqual({
    answer: 'stop',
    effect: 'end the run, which has no checkpoint yet',
  });
  await handle.executeUpdate(decide, { args: ['stop'] });
  await expect(handle.result()).rejects.toBeInstanceOf(WorkflowFailedError);
  const { failure, status } = await lab.runs.progress(handle, () => true);
  expect({ failure, status }).toEqual({
    failure: expect.stringContaining('runs/nothing-yet/objects/initializeModel'),
    status: 'failed',
  });
});

test('a verdict that is kept and damaged is met by who asks for it, before a workflow without a run is started', async () => {
  const request = {
    format: 'gradus.verify/1' as const,
    verifier: 'near',
    version: '1',
    digest,
    subject: null,
  };
  const ask = {
    request,
    environment: 'calculator-ladder',
    cost: { seconds: 1, usd: 0 },
    limits: { timeoutSeconds: 1, heartbeatSeconds: 1, maxAttempts: 1 },
    served: { by: 'queue' as const, queue: 'none' },
  };
  await putVerdict(store, request, {
    format: 'gradus.verdict/1',
    verifier: 'near',
    version: '1',
    digest,
    spent: { seconds: 1, usd: 0 },
    kind: 'scored',
    score: 1,
  });
  const key = verdictKey('near', '1', digest);
  const { ref: asks } = await store.putIfAbsent('asks', wishes, [{ ask, value: 0, basis: null }]);
  await flipByte(key);
  const { client } = lab.runs;
  const verdicts = createVerdicts({ store, client });
  const asking = verdicts.requestVerdicts(
    { asks, from: 0, to: 1, requester: 'nobody' },
    new AbortController().signal,
  );
  await expect(asking).rejects.toMatchObject({
    type: 'corrupt-object',
    message: expect.stringContaining(key),
  });
  await expect(client.workflow.getHandle(ids.verdict(request)).describe()).rejects.toBeInstanceOf(
    WorkflowNotFoundError,
  );
});
