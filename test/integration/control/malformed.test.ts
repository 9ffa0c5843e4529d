import type { Payload } from '@temporalio/common';
import { WorkflowFailedError, WorkflowUpdateFailedError } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { WantedVerdict } from '../../../core/ladder/requests.ts';
import { ids, QUEUES } from '../../../core/names.ts';
import type { Progress } from '../../../workflows/control/messages.ts';
import { ladderSpec, startLadderInstallation } from '../../support/ladder-installation.ts';
import type { LadderInstallation } from '../../support/ladder-installation.ts';
import { until, untilBegun } from '../../support/run-client.ts';
import { DONE } from '../../support/ended.ts';

let installation: LadderInstallation;
beforeAll(async () => {
  installation = await startLadderInstallation();
}, 600_000);
afterEach(() => installation.releaseAll());
afterAll(() => installation?.remove());

/** What nobody means, of each kind that JSON has, and halves of what somebody does. */
const GARBAGE: unknown[] = [
  undefined,
  null,
  true,
  -1e308,
  '',
  '__proto__',
  'x'.repeat(5000),
  [],
  [null],
  [[{}]],
  {},
  { __proto__: null, constructor: 1 },
  { id: 'x', replyTo: '', stage: 'rl', step: 1, groups: [null], budgets: {}, reward: {} },
  { id: 'x', reason: 'why', answers: 'none' },
  { question: {}, answer: 'stop' },
  { verifier: 'near', version: '1', digest: 7, result: 'scored', spent: { seconds: 'x' } },
  [{ verifier: 'near' }],
  { stage: 'rl', step: 1, checkpoint: null, seconds: {} },
];

/** A payload that says that it is JSON and is none, and one that only its sender can read. */
const UNREADABLE: Payload[] = [
  { metadata: { encoding: Buffer.from('json/plain') }, data: Buffer.from('{"a":') },
  { metadata: { encoding: Buffer.from('binary/mine') }, data: Buffer.from([1, 2, 3]) },
];

const SIGNALS = [
  'pause',
  'resume',
  'stepReported',
  'questionAsked',
  'decided',
  'climbWanted',
  'climbed',
  'ladderSwept',
  'verdictArrived',
  'verdictWanted',
  'never-heard-of',
];
const UPDATES = ['decide', 'submitVerdict'];
const QUERIES = ['progress', 'ladder', 'review'];

/** Sends everything to every handler of a workflow. What it has no handler for must do no harm either. */
async function pelt(handle: WorkflowHandle): Promise<void> {
  const { client } = installation.runs;
  for (const name of SIGNALS) {
    await Promise.all(GARBAGE.map((message) => handle.signal(name, message)));
    for (const payload of UNREADABLE) {
      await client.workflowService.signalWorkflowExecution({
        namespace: client.options.namespace,
        workflowExecution: { workflowId: handle.workflowId },
        signalName: name,
        input: { payloads: [payload] },
      });
    }
  }
  // A run is not to stay paused.
  await handle.signal('resume');
  for (const name of UPDATES) {
    for (const message of GARBAGE) {
      const update = handle.executeUpdate(name, { args: [message] });
      await expect(update).rejects.toBeInstanceOf(WorkflowUpdateFailedError);
    }
  }
  for (const name of QUERIES) {
    for (const message of GARBAGE) await handle.query(name, message).catch(() => undefined);
  }
}

/** Workflows of a type that are open. What visibility lists lags behind a little. */
const open = (type: string): Promise<string[]> =>
  until(
    async () => {
      const query = `WorkflowType = '${type}' AND ExecutionStatus = 'Running'`;
      const found: string[] = [];
      for await (const { workflowId } of installation.runs.client.workflow.list({ query })) {
        found.push(workflowId);
      }
      return found.length > 0 ? found : undefined;
    },
    300_000,
    () => `there is no open ${type}`,
  );

/** What the ladder of a run has asked of a verifier. */
async function asked(run: string, verifier: string): Promise<string[]> {
  const { store } = installation;
  const found: string[] = [];
  for (const { key } of await store.list(`runs/${run}/asks/`)) {
    const wishes = (await store.getJson((await store.head(key))!)) as unknown as WantedVerdict[];
    found.push(...wishes.map(({ ask }) => ids.verdict(ask.request)));
  }
  return found.filter((id) => id.startsWith(`verdict/${verifier}/`));
}

test('garbage to every handler of every workflow of a run is refused or ignored, and the run ends as it would have', async () => {
  const { runs, hold, status, ladderEnd } = installation;
  const spec = ladderSpec([{ verifier: 'expert', passAtLeast: 0.5, wait: true, reviewers: 1 }], {
    maxSteps: 1,
    groupsPerStep: 1,
  });
  const near = { verifier: 'near', passAtLeast: 0 };
  spec.verification.rungs.splice(1, 0, near);
  const release = await hold('near');
  const run = await runs.start('pelted', spec);
  await runs.progress(run, ({ phase }) => phase === 'rl');
  await until(
    async () => (await status('pelted'))?.waiting || undefined,
    300_000,
    () => 'nothing is waited for',
  );
  const { client } = runs;
  const [verdict] = await open('verdict');
  for (const id of ['pelted', 'pelted/rl', 'pelted/ladder', verdict!]) {
    await pelt(client.workflow.getHandle(id));
  }
  const { question, step, unknownSignals }: Progress = await runs.progress(
    run,
    ({ status: now }) => now === 'running',
  );
  expect({ question, step: step?.stage }).toEqual({ question: null, step: 'warm-start' });
  expect(unknownSignals).toContain('there is no signal "never-heard-of". There are: pause, resume, stop');
  await release();

  const [review] = await open('review');
  await pelt(client.workflow.getHandle(review!));
  // Each of them, once it is there: what is asked is written down before.
  let over = false;
  const ended = run.result().finally(() => (over = true));
  ended.catch(() => undefined);
  const answered = new Set<string>();
  await until(
    async () => {
      for (const id of await asked('pelted', 'expert')) {
        if (answered.has(id)) continue;
        await untilBegun(runs, id);
        const opinion = { reviewer: 'ann', score: 1 };
        await client.workflow.getHandle(id).executeUpdate('submitVerdict', { args: [opinion] });
        answered.add(id);
      }
      return over || undefined;
    },
    240_000,
    () => `the run goes on, though ${answered.size} reviews are answered`,
  );
  expect(await ended).toMatchObject({ end: DONE });
  expect((await ladderEnd('pelted')).waiting).toBe(0);

  const left = await (await runs.start('left-alone', { ...spec, run: undefined })).result();
  expect(left.checkpoint.weights).toBe((await run.result()).checkpoint.weights);
});

/** Why a workflow failed that was started with this. */
async function failure(type: string, args: unknown[]): Promise<string> {
  const started = await installation.runs.client.workflow.start(type, {
    workflowId: `garbage-${type}-${Math.random()}`,
    taskQueue: QUEUES.orchestrator,
    args,
  });
  try {
    await started.result();
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error;
    let at: Error = error;
    while (at.cause instanceof Error) at = at.cause;
    return at.message;
  }
  throw new Error(`${type} completed with ${JSON.stringify(args)}`);
}

test('a workflow of a misspelt type fails at once, and says which there are', async () => {
  expect(await failure('curiculum', [{}])).toMatch(
    /^there is no workflow "curiculum"; did you mean "curriculum"\? There are: .*, verificationSweep/,
  );
  expect(await failure('x'.repeat(900), [])).toMatch(/^there is no workflow "x{100}"\. There are: /);
}, 600_000);

test('a misspelt signal is shown by the run, with the nearest name, and changes nothing', async () => {
  const { runs } = installation;
  const run = await runs.start(
    'misspelt',
    ladderSpec([{ verifier: 'near', passAtLeast: 0 }], { maxSteps: 1, groupsPerStep: 1 }),
  );
  await run.signal('stopp', 'now');
  await run.signal('stopp');
  const problem = 'there is no signal "stopp"; did you mean "stop"? There are: pause, resume, stop';
  expect(
    (await runs.progress(run, ({ unknownSignals }) => unknownSignals.length > 0)).unknownSignals,
  ).toEqual([problem]);
  expect(await run.result()).toMatchObject({ end: DONE });
  expect((await run.query<Progress>('progress')).unknownSignals).toEqual([problem]);
});

test('every workflow that is started with garbage fails at once and says why', async () => {
  const types = [
    'curriculum',
    'supervised',
    'stage',
    'rolloutGroup',
    'followEpisodes',
    'evaluation',
    'verdictPage',
    'ladder',
    'verdict',
    'review',
    'reverify',
    'verificationSweep',
  ];
  await Promise.all(
    types.flatMap((type) =>
      [...GARBAGE.map((input) => [input]), [{}, { state: {} }]].map(async (args) =>
        expect(await failure(type, args)).toMatch(
          /cannot begin with this|is a part of a run|was refused|takes one input/,
        ),
      ),
    ),
  );
}, 600_000);
