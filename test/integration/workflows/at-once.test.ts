import { inspect } from 'node:util';
import type { Client } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCurriculum } from '../../../activities/training/curriculum.ts';
import { GradusError } from '../../../core/errors.ts';
import { DEADLINE, WITHDRAWN } from '../../../core/ladder/abstentions.ts';
import type { VerdictRequest } from '../../../core/ladder/requests.ts';
import { ids, QUEUES } from '../../../core/names.ts';
import type { OpenQuestion } from '../../../core/question.ts';
import type { ChangeRequest } from '../../../core/requests/run.ts';
import type { VerifyRequest } from '../../../core/requests/verification.ts';
import type { StoredChange } from '../../../core/run-change.ts';
import { answered as answeredIn } from '../../../runs/control/answered.ts';
import { changeRun } from '../../../runs/control/change.ts';
import { answerQuestion, signalRun } from '../../../runs/control/control.ts';
import { showReview, submitOpinion, withdrawOpinion } from '../../../runs/control/review.ts';
import { startRun } from '../../../runs/control/start.ts';
import { readChanges } from '../../../store/run/changes.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { questionAsked } from '../../../workflows/control/messages.ts';
import { hollowActivities, verifyHeldUp } from '../../support/hollow-activities.ts';
import { ladderSpec } from '../../support/ladder-installation.ts';
import { until } from '../../support/run-client.ts';
import { Gate, startWorkflowLab } from '../../support/workflow-lab.ts';
import type { WorkflowLab } from '../../support/workflow-lab.ts';

// Several people do something to the same run or review at once, also while it continues as new. Histories end after a
// few events here.

/** By run: holds up its groups. */
const rollingOut = new Map<string, Gate>();
/** Changes that were written down. */
let changes = 0;
/** So many are made, at least, while the groups of a stage of the run `changing` are held up. */
const IN_EACH_STAGE = 8;
/** By verifier: holds up the writing down of a verdict. */
const writing = new Map<string, Gate>();

let store: ObjectStore;
let lab: WorkflowLab;
let client: Client;
beforeAll(async () => {
  lab = await startWorkflowLab(
    async ({ runs, settings }) => {
      store = await ObjectStore.connect(settings.store);
      const { keepChange } = createCurriculum({ store, environments: new Map() });
      const { orchestrator, verifier, ...others } = hollowActivities(runs);
      const heldUp = verifyHeldUp(rollingOut);
      return {
        ...others,
        orchestrator: {
          ...orchestrator,
          keepChange: (request: ChangeRequest) => {
            changes++;
            return keepChange(request, AbortSignal.timeout(60_000));
          },
        },
        verifier: {
          ...verifier,
          verifyGroup: async (request: VerifyRequest) => {
            const { run, stage } = request.group;
            const least = changes + IN_EACH_STAGE;
            if (run === 'changing' && ['rl', 'later-0', 'later-1', 'later-2'].includes(stage))
              await until(
                () => Promise.resolve(changes >= least || undefined),
                300_000,
                () => `nobody changes ${run} in ${stage}`,
              );
            return heldUp(request);
          },
          recallVerdict: () => null,
          keepVerdict: async ({
            request,
            answer,
          }: {
            request: VerdictRequest['request'];
            answer: object;
          }) => {
            await writing.get(request.verifier)?.opened;
            return { answer, lost: null };
          },
        },
      };
    },
    { dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 10 } },
  );
  ({ client } = lab.runs);
}, 600_000);
afterAll(async () => {
  for (const gate of [...rollingOut.values(), ...writing.values()]) gate.open();
  store?.close();
  await lab?.stop();
});

/** A run of several short stages, behind each of which it continues as new. */
function spec(later: number, maxSteps = 1) {
  const short = ladderSpec([{ verifier: 'near', passAtLeast: 0.5 }], { maxSteps, groupsPerStep: 1 });
  const [warmStart, stage] = short.stages;
  const stages = Array.from({ length: later }, (_, i) => ({ ...stage, name: `later-${i}` }));
  return { ...short, stages: [warmStart, stage, ...stages] };
}

/** As the command has it, for as long as a busy machine may take. */
const answered = <T>(of: Client, run: string, operation: () => Promise<T>): Promise<T> =>
  answeredIn(of, run, operation, 120_000);

/** What came of something that several people did at once; what was refused says why. */
async function outcomes<T>(attempts: readonly Promise<T>[]): Promise<{ taken: T[]; refused: string[] }> {
  const settled = await Promise.allSettled(attempts);
  const taken = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const errors = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
  for (const error of errors) expect(error, inspect(error)).toBeInstanceOf(GradusError);
  return { taken, refused: errors.map((error) => (error as GradusError).message) };
}

test('of changes that people make while a run continues as new none is lost, and none is made twice', async () => {
  const run = await lab.runs.start('changing', spec(3));
  const over = new Gate();
  const ended = run.result().finally(() => over.open());
  const taken: StoredChange[] = [];
  const refused: string[] = [];
  const person = async (who: number): Promise<void> => {
    for (let i = 1; !over.isOpen; i++) {
      const wanted = { budgets: { near: { count: 1000 + 10 * i + who } }, reason: `${who}/${i}` };
      const made = await outcomes([
        answered(client, 'changing', () => changeRun(client, 'changing', wanted)),
      ]);
      taken.push(...made.taken);
      refused.push(...made.refused);
    }
  };
  await Promise.all([ended, ...[1, 2, 3, 4].map(person)]);

  const kept = await readChanges(store, 'changing');
  expect(kept.length).toBeGreaterThan(20);
  expect(kept.map(({ number, after }) => [number, after])).toEqual(kept.map((_, i) => [i + 1, i]));
  expect(taken.toSorted((a, b) => a.number - b.number)).toEqual(kept);
  expect(new Set(kept.map(({ reason }) => reason)).size).toBe(kept.length);
  for (const refusal of refused)
    expect(refusal).toMatch(
      /no stage is left that could spend|does not go on any more|is between two stages/,
    );
  const { changes } = await lab.runs.progress(run, () => true);
  expect(changes).toEqual(kept.slice(-changes.length));
  // It has continued as new, and changes were made before and after.
  const executions: string[] = [];
  const query = `WorkflowId = 'changing' AND WorkflowType = 'curriculum'`;
  for await (const { runId } of client.workflow.list({ query })) executions.push(runId);
  expect(executions.length).toBeGreaterThan(3);
  expect(new Set(kept.map(({ stage }) => stage)).size).toBeGreaterThan(2);
});

test('of answers that people give at once one counts, and none of them meets the next question', async () => {
  const run = 'asked';
  rollingOut.set(run, new Gate());
  const handle = await lab.runs.start(run, spec(0, 50));
  await lab.runs.progress(handle, ({ phase }) => phase === 'rl');
  const question = (id: string): OpenQuestion => ({
    id,
    asker: ids.ladder(run),
    reason: `why ${id}`,
    answers: [
      { answer: 'continue', effect: 'go on' },
      { answer: 'rollback', effect: 'go back' },
      { answer: 'stop', effect: 'stop' },
    ],
  });
  for (const id of ['first', 'second']) await handle.signal(questionAsked, question(id));
  await lab.runs.progress(handle, (shown) => shown.question?.id === 'first');
  const answers = (id: string, ...given: ('continue' | 'rollback' | 'stop')[]) =>
    outcomes(
      Array.from({ length: 16 }, (_, i) =>
        answered(client, run, () => answerQuestion(client, run, given[i % given.length]!, id)),
      ),
    );
  const first = await answers('first', 'continue', 'rollback');
  expect(first.taken).toHaveLength(1);
  expect(new Set(first.refused)).toEqual(
    new Set([
      '"first" is not the question that is open, which is "second": why second. Look at `progress` before you answer',
    ]),
  );
  expect((await lab.runs.progress(handle, () => true)).question?.id).toBe('second');
  const second = await answers('second', 'stop', 'continue');
  expect(second.taken).toHaveLength(1);
  expect(new Set(second.refused)).toEqual(new Set(['the run waits for no decision']));
  if (second.taken[0] !== 'stop') await signalRun(client, run, 'stop');
  rollingOut.get(run)!.open();
  await expect(handle.result()).resolves.toMatchObject({ end: 'stopped' });
});

test('a run that is told everything at once is stopped, and says afterwards that it is over', async () => {
  const run = 'hammered';
  rollingOut.set(run, new Gate());
  const handle = await lab.runs.start(run, spec(0, 50));
  await lab.runs.progress(handle, ({ phase }) => phase === 'rl');
  const signals = ['pause', 'resume', 'pause', 'stop'] as const;
  const tell = (name: (typeof signals)[number]) => answered(client, run, () => signalRun(client, run, name));
  const told = await outcomes(Array.from({ length: 100 }, (_, i) => tell(signals[i % 4]!)));
  expect(told.taken).toHaveLength(100);
  expect(await lab.runs.progress(handle, () => true)).toMatchObject({ status: 'stopping' });
  // Nobody takes limits from a run that is being stopped.
  const late = await outcomes([answered(client, run, () => changeRun(client, run, { maxSteps: { rl: 2 } }))]);
  expect(late.refused).toEqual(['the run is being stopped']);
  rollingOut.get(run)!.open();
  await expect(handle.result()).resolves.toMatchObject({ end: 'stopped' });
  expect((await outcomes([tell('pause')])).refused).toEqual([
    expect.stringContaining('does not go on any more'),
  ]);
});

test('a run that people start at once under one id is started once', async () => {
  const run = 'started';
  rollingOut.set(run, new Gate());
  const { taken, refused } = await outcomes(Array.from({ length: 6 }, () => startRun(client, run, spec(0))));
  expect(taken).toHaveLength(1);
  expect(refused).toHaveLength(5);
  for (const refusal of refused) expect(refusal).toContain('"started" is already running');
  rollingOut.get(run)!.open();
  await taken[0]!.result();
});

let asked = 0;
/** Begins a review, and gives its id. */
async function beginReview(verifier: string, timeoutSeconds: number): Promise<string> {
  const digest = String(++asked).padStart(64, '0');
  const ask: VerdictRequest = {
    request: { format: 'gradus.verify/1', verifier, version: '1', digest, subject: null },
    environment: 'none',
    cost: { seconds: 1, usd: 0 },
    limits: { timeoutSeconds, heartbeatSeconds: 1, maxAttempts: 1 },
    served: { by: 'people', reviewers: 1 },
  };
  const workflowId = ids.verdict(ask.request);
  await client.workflow.start('review', { workflowId, taskQueue: QUEUES.orchestrator, args: [ask] });
  return workflowId;
}

const ANN = { reviewer: 'ann', score: 1 };

test('who gives a verdict when the deadline has passed, or the review is closed, is told what came of it', async () => {
  writing.set('slow', new Gate());
  const review = await beginReview('slow', 1);
  await expect
    .poll(async () => (await showReview(client, review)).verdict, { timeout: 120_000 })
    .toMatchObject({ type: DEADLINE });
  const none = 'this review is closed without a verdict: 0 of 1 reviewers had answered when the time was up';
  // Its verdict is just being written down; then it is over.
  for (const over of [false, true]) {
    if (over) {
      writing.get('slow')!.open();
      await client.workflow.getHandle(review).result();
    }
    const late = await outcomes<unknown>([
      submitOpinion(client, review, ANN),
      withdrawOpinion(client, review, { reviewer: 'ann', all: true }),
    ]);
    expect(late.taken).toEqual([]);
    for (const refusal of late.refused) expect(refusal).toContain(none);
  }
});

test('a verdict and its withdrawal at once: one of them counts, and the other one is told so', async () => {
  const won = new Set<string>();
  await Promise.all(
    Array.from({ length: 12 }, async (_, i) => {
      const review = await beginReview('quick', 600);
      const both = [
        () => submitOpinion(client, review, ANN),
        () => withdrawOpinion(client, review, { reviewer: 'bob', reason: 'not needed', all: true }),
      ];
      const { taken, refused } = await outcomes((i % 2 === 0 ? both : both.toReversed()).map((one) => one()));
      expect(taken).toHaveLength(1);
      await client.workflow.getHandle(review).result();
      const { verdict } = await showReview(client, review);
      const type = verdict!.kind === 'abstained' ? verdict!.type : verdict!.kind;
      won.add(type);
      expect(['scored', WITHDRAWN]).toContain(type);
      // What was taken is what counts.
      expect(taken[0]!.withdrawn).toHaveLength(type === WITHDRAWN ? 1 : 0);
      expect(refused[0]).toMatch(
        type === WITHDRAWN ? /closed without a verdict: bob took it back/ : /is decided|the verdict is 1/,
      );
      const late = await outcomes([submitOpinion(client, review, { reviewer: 'cid', score: 0 })]);
      expect(late.refused).toEqual([expect.stringContaining('this review is closed')]);
    }),
  );
  console.info(`counted: ${[...won].join(', ')}`);
});
