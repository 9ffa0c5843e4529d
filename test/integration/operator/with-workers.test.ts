import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { Context } from '@temporalio/activity';
import { WorkflowNotFoundError } from '@temporalio/client';
import { ApplicationFailure, defineSearchAttributeKey } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startAlerting } from '../../../cli/alerting.ts';
import { GradusError } from '../../../core/errors.ts';
import { QUEUES } from '../../../core/names.ts';
import type { TrainRequest } from '../../../core/requests/learner.ts';
import type { DueCallsRequest } from '../../../core/requests/rollout.ts';
import type { ChangeRequest } from '../../../core/requests/run.ts';
import type { VerifyRequest } from '../../../core/requests/verification.ts';
import type { Alert } from '../../../runs/overview/alerts.ts';
import { readRuns } from '../../../runs/overview/runs.ts';
import type { Sources } from '../../../runs/sources.ts';
import { whyOf } from '../../../runs/overview/why.ts';
import type { Reason, Why } from '../../../runs/overview/why.ts';
import { stackEnvironment } from '../../../infra/dev/stack-addresses.ts';
import { runCommand } from '../../../infra/setup/command.ts';
import { putChange, readChanges } from '../../../store/run/changes.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { COMMAND, gradusCommand } from '../../support/gradus-command.ts';
import { ROOT } from '../../support/markdown.ts';
import { digest, hollowActivities } from '../../support/hollow-activities.ts';
import { ladderSpec } from '../../support/ladder-installation.ts';
import { until } from '../../support/run-client.ts';
import { DELETES_SOON } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { Gate, startWorkflowLab } from '../../support/workflow-lab.ts';
import type { WorkflowLab } from '../../support/workflow-lab.ts';

// The real workflows, with activities that are slow, fail, or meet nobody: what a person is told of each.

/** By run: what its activities do until the gate opens. */
const slow = new Map<string, Gate>();
const failing = new Map<string, Gate>();
const damaged = new Set<string>();
const lonely = new Set<string>();
const REVIEW = `verdict/expert/1/${digest}`;

/** Alive, and getting nowhere. */
async function heldUp(gate: Gate): Promise<void> {
  const context = Context.current();
  const beat = (): void => context.heartbeat({ done: 3, total: 8, tokens: 500 });
  beat();
  const timer = setInterval(beat, 500);
  await gate.opened.finally(() => clearInterval(timer));
}

let lab: WorkflowLab;
let store: ObjectStore;
let sources: Sources;
let alerting: ReturnType<typeof startAlerting> | undefined;
let gradus: ReturnType<typeof gradusCommand>;
/** Hollow ones, but for what the runs above make of them. */
async function activities({ runs, settings }: TestInstallation) {
  const { verifier, learner, rollout, orchestrator, ...others } = hollowActivities(runs);
  store = await ObjectStore.connect(settings.store);
  return {
    ...others,
    orchestrator: {
      ...orchestrator,
      keepChange: ({ run, made }: ChangeRequest) => putChange(store, run, made),
    },
    rollout: {
      ...rollout,
      dueCalls: (request: DueCallsRequest) => {
        const calls = rollout.dueCalls(request);
        const alone = lonely.has(request.group.run) && request.group.stage === 'rl';
        return calls.map((call) => (alone ? { ...call, queue: 'gradus-nobody' } : call));
      },
    },
    verifier: {
      ...verifier,
      recallVerdict: () => null,
      keepVerdict: ({ answer }: { answer: unknown }) => ({ answer, lost: null }),
      verifyGroup: async (request: VerifyRequest) => {
        const gate = slow.get(request.group.run);
        if (gate && request.group.stage === 'rl') await heldUp(gate);
        return verifier.verifyGroup(request);
      },
    },
    learner: {
      trainStep: async (request: TrainRequest) => {
        const { run } = request;
        if (failing.has(run) && !failing.get(run)!.isOpen)
          throw new GradusError(
            'store',
            'disk-full',
            `no room\u001b[31m on the disk, key ${lab.settings.store.secretKey}`,
            { retryable: true },
          );
        if (damaged.delete(run))
          throw ApplicationFailure.nonRetryable('runs/x/batch is gone', 'gradus.store.missing-object');
        return learner.trainStep(request);
      },
    },
  };
}

beforeAll(async () => {
  lab = await startWorkflowLab(activities, { dynamicConfig: DELETES_SOON });
  gradus = gradusCommand(lab.stack);
  sources = { store, temporal: lab.runs.client };
}, 600_000);
afterAll(async () => {
  for (const gate of [...slow.values(), ...failing.values()]) gate.open();
  await alerting?.stop();
  store?.close();
  await lab?.stop();
});

const spec = () => ladderSpec([{ verifier: 'near', passAtLeast: 0.5 }], { maxSteps: 2, groupsPerStep: 2 });

/** What a run waits for, once it does. */
async function whyWhen(run: string, wanted: (reason: Reason) => boolean): Promise<Why> {
  let last: Why | undefined;
  return until(
    async () => {
      last = await whyOf(sources, run);
      // Where others are at work, too, a run may not answer at once.
      return last.problems.length === 0 && last.reasons.some(wanted) ? last : undefined;
    },
    300_000,
    () => `${run} waits for something else: ${JSON.stringify(last)}`,
  );
}

test('what works is shown with how far it is, and nothing else is said', async () => {
  slow.set('slow', new Gate());
  const handle = await lab.runs.start('slow', spec());
  const why = await whyWhen('slow', (reason) => reason.kind === 'works' && reason.said.length === 2);
  expect(why).toMatchObject({ run: 'slow', status: 'running', stage: 'rl', problems: [] });
  expect(why.reasons).toMatchObject([
    {
      kind: 'works',
      activity: 'verifyGroup',
      queue: 'gradus-verifier',
      attempt: 1,
      said: [
        { kind: 'progress', done: 3, total: 8, tokens: 500 },
        { kind: 'progress', done: 3, total: 8, tokens: 500 },
      ],
    },
  ]);
  slow.get('slow')!.open();
  await handle.result();
  await expect(whyOf(sources, 'slow')).resolves.toMatchObject({
    status: 'completed',
    reasons: [{ kind: 'over', status: 'completed', failure: null }],
  });
});

/** A server that takes alerts, and what it was given. */
async function webhook(): Promise<{ url: string; got: Alert[]; close: () => void }> {
  const got: Alert[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (part: Buffer) => (body += part.toString()));
    request.on('end', () => {
      got.push(JSON.parse(body) as Alert);
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}/`, got, close };
}

test('what is tried again is told from what nobody serves, and both from a question', async () => {
  failing.set('retries', new Gate());
  damaged.add('asks');
  lonely.add('lonely');
  const hook = await webhook();
  const lines: string[] = [];
  const say = (line: string): void => void lines.push(line);
  alerting = startAlerting(lab.settings, { say, webhook: hook.url, intervalMs: 300, retries: 3, env: {} });
  for (const run of ['retries', 'asks', 'lonely']) await lab.runs.start(run, spec());
  await lab.runs.start('unreadable', { model: 1 });
  // People are asked, too.
  const request = {
    format: 'gradus.verify/1',
    verifier: 'expert',
    version: '1',
    digest,
    subject: { answer: '\u202e7' },
  };
  const limits = { timeoutSeconds: 3600, heartbeatSeconds: 60, maxAttempts: 1 };
  const cheaper = [{ verifier: 'near', version: '1', score: 0.75 }];
  await lab.runs.client.workflow.start('review', {
    args: [
      {
        request,
        environment: 'calculator-ladder',
        cost: { seconds: 1, usd: 0 },
        limits,
        served: { by: 'people', reviewers: 2 },
        run: 'asks',
        cheaper,
      },
    ],
    workflowId: REVIEW,
    taskQueue: QUEUES.orchestrator,
    typedSearchAttributes: [
      { key: defineSearchAttributeKey('GradusRun', 'KEYWORD'), value: 'asks' },
      { key: defineSearchAttributeKey('GradusVerifier', 'KEYWORD'), value: 'expert' },
    ],
  });

  const retries = await whyWhen(
    'retries',
    ({ kind, ...more }) => kind === 'retry' && Object(more).attempt > 2,
  );
  expect(retries.reasons).toMatchObject([
    {
      kind: 'retry',
      activity: 'trainStep',
      queue: 'gradus-learner',
      failure: expect.stringContaining('no room\u001b[31m on the disk') as string,
    },
  ]);

  await whyWhen('asks', ({ kind }) => kind === 'question');
  const asks = await whyWhen('asks', (reason) => reason.kind === 'review' && reason.given !== null);
  expect(asks).toMatchObject({
    status: 'waiting',
    reasons: [
      { kind: 'question', question: { id: expect.any(String) as string } },
      { kind: 'review', id: REVIEW, verifier: 'expert', given: 0, reviewers: 2 },
    ],
  });

  const alone = await whyWhen('lonely', ({ kind }) => kind === 'no-worker');
  expect(alone.reasons).toMatchObject([
    { kind: 'no-worker', queue: 'gradus-nobody', what: ['callTool'], lastAsked: null, sure: true },
  ]);

  // Those that wait for a person come first.
  const first = await until(
    async () => {
      const { rows } = await readRuns(sources, { patienceMs: 10_000 });
      return rows[0]?.from === 'progress' && rows[0].run === 'asks' ? rows[0] : undefined;
    },
    300_000,
    () => 'the run that asks does not come first, with what it says',
  );
  expect(first).toMatchObject({ run: 'asks', status: 'waiting' });
  expect(first.question!.reason).toContain('runs/x/batch is gone');

  // Each has been told, by both ways, without what must not leave the machine.
  const told = (alert: Partial<Alert>): Promise<Alert> =>
    until(
      async () =>
        hook.got.find((one) => Object.entries(alert).every(([name, value]) => Object(one)[name] === value)),
      300_000,
      () => `${JSON.stringify(alert)} was not told: ${JSON.stringify(hook.got)}`,
    );
  expect((await told({ kind: 'question', run: 'asks', over: false })).text).toContain('runs/x/batch is gone');
  expect((await told({ kind: 'no-worker', run: 'lonely', over: false })).text).toContain('gradus-nobody');
  expect((await told({ kind: 'review', over: false })).text).toContain(REVIEW);
  expect((await told({ kind: 'retry', run: 'retries', over: false })).text).toContain(
    'on the disk, key [secret]',
  );
  expect((await told({ kind: 'failed', run: 'unreadable' })).text).toContain(
    'refused before anything was spent',
  );
  expect(JSON.stringify([hook.got, lines])).not.toContain(lab.settings.store.secretKey);
  const questions = (): number => hook.got.filter(({ kind, over }) => kind === 'question' && !over).length;
  expect(questions()).toBe(1);

  // What they wait for is given to them, from the terminal.
  const list = await gradus('review', 'list');
  expect(list.stdout).toMatch(
    new RegExp(`${REVIEW}\\n  of asks, 0 of 2 reviewers have answered, 5\\d min left`),
  );
  expect(list.stdout).toContain('{"answer":"\\u202e7"}\n  before: near 0.750');
  const by = ['--reviewer', 'ann'];
  expect(await gradus('review', 'submit', REVIEW, ...by, '--score', '1')).toMatchObject({ code: 0 });
  const back = await gradus('review', 'withdraw', REVIEW, ...by, '--reason', 'a slip');
  expect(back).toMatchObject({ code: 0, stdout: 'withdrawn: 0 of 2 reviewers have answered\n' });
  const closed = await gradus('review', 'withdraw', REVIEW, ...by, '--all');
  expect(closed).toMatchObject({ code: 0, stdout: 'the review is closed without a verdict\n' });
  await told({ kind: 'review', over: true });

  const unsure = await gradus('decide', 'asks', 'stop', '--yes', 'other');
  expect(unsure).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('nothing was done') as string,
  });
  const wrong = await gradus('decide', 'asks', 'rollback');
  expect(wrong).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is no answer to this question') as string,
  });
  const decided = await gradus('decide', 'asks', 'continue');
  expect(decided).toMatchObject({ code: 0, stdout: expect.stringContaining('asks: continue') as string });
  await told({ kind: 'question', run: 'asks', over: true });
  expect((await gradus('decide', 'asks', 'continue')).stderr).toMatch(/waits for no decision|is over/);

  // A run that goes on takes other limits, waits, goes on, and ends.
  const set = await gradus(
    'set',
    'retries',
    '--max-steps',
    'rl=1',
    '--budget',
    'near.count=3',
    '--reason',
    'dear',
  );
  expect(set.stderr).toBe('');
  expect(set).toMatchObject({ code: 0, stdout: expect.stringContaining('change 1 of retries') as string });
  expect(await readChanges(store, 'retries')).toMatchObject([
    { maxSteps: { rl: 1 }, budgets: { near: { count: 3 } }, reason: 'dear' },
  ]);
  const misspelt = await gradus('set', 'retries', '--budget', 'nea.count=3');
  expect(misspelt).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('did you mean "near"') as string,
  });
  expect((await gradus('pause', 'retries')).stdout).toBe('retries: it waits after the step in flight\n');
  expect((await whyWhen('retries', ({ kind }) => kind === 'paused')).status).toBe('paused');
  expect((await gradus('resume', 'retries')).code).toBe(0);
  expect(await gradus('stop', 'retries', '--yes', 'other')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('nothing was done') as string,
  });
  expect((await gradus('stop', 'retries', '--yes', 'retries')).code).toBe(0);
  failing.get('retries')!.open();
  await told({ kind: 'retry', run: 'retries', over: true });
  await expect(lab.runs.client.workflow.getHandle('retries').result()).resolves.toMatchObject({
    end: 'stopped',
  });
  const over = await gradus('pause', 'retries');
  expect(over).toMatchObject({ code: 1, stderr: expect.stringContaining('is over (stopped)') as string });
  await alerting.stop();
  hook.close();
});

test('a run is started once, says its name, and a spec that the workers refuse is told with why', async () => {
  const file = path.join(lab.stateDir, 'spec.json');
  slow.set('begun', new Gate());
  await writeFile(file, JSON.stringify(spec()));
  const both = await Promise.all([1, 2].map(() => gradus('start', file, '--id', 'begun', '--no-check')));
  const [begun, again] = both.toSorted((a, b) => Number(a.code) - Number(b.code));
  expect(begun).toMatchObject({ code: 0, stdout: 'begun\n' });
  expect(again).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('"begun" is already running') as string,
  });
  const misspelt = JSON.stringify(spec()).replaceAll('calculator-ladder', 'calculator-laddr');
  await writeFile(file, misspelt);
  const refused = await gradus('start', file, '--id', 'refused', '--no-check');
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toContain('did you mean "calculator-ladder"');
  expect(refused.stderr).toContain('Nothing of this run is kept.');

  slow.get('begun')!.open();
  await writeFile(file, JSON.stringify(spec()));
  const watched = await gradus('start', file, '--id', 'watched', '--no-check', '--watch');
  expect(watched).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^watched\n.*steps 3, /s) as string,
  });

  damaged.add('unwanted');
  const unwanted = await lab.runs.start('unwanted', spec());
  await lab.runs.progress(unwanted, ({ status }) => status === 'waiting');
  const asked = await runCommand('bash', ['-c', `echo no | node ${COMMAND} decide unwanted stop`], {
    env: { ...process.env, ...stackEnvironment(lab.stack) },
    cwd: ROOT,
  });
  expect(asked).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('runs/x/batch is gone') as string,
    stderr: expect.stringMatching(/for good\. Type "unwanted" to confirm:[^]*nothing was done/) as string,
  });
  expect(await gradus('decide', 'unwanted', 'stop', '--yes', 'unwanted')).toMatchObject({ code: 0 });
  await expect(unwanted.result()).resolves.toMatchObject({ end: 'stopped' });

  const { workflow } = lab.runs.client;
  await until(
    () =>
      workflow
        .getHandle('refused')
        .describe()
        .then(
          () => undefined,
          (error: unknown) => (error instanceof WorkflowNotFoundError ? true : undefined),
        ),
    300_000,
    () => 'the refused run is still there',
  );
});
