import { Hono } from 'hono';
import { expect, test } from 'vitest';
import { noTime } from '../../../core/time/time-split.ts';
import { asset } from '../../../dashboard/assets.ts';
import type { Context } from '../../../dashboard/context.ts';
import { runPage } from '../../../dashboard/pages/run.tsx';
import type { RunObserver, RunView } from '../../../runs/overview/run.ts';
import type { Sources } from '../../../runs/sources.ts';
import { someFailureFacts, someSynthesisFacts } from '../core/training/scripted-training.ts';
import { noOutcomes } from '../../../core/episode/outcome.ts';
import { noBehaviour } from '../../../core/training/behaviour.ts';
import { someStep } from '../../support/some-step.ts';
import type { StoredStep } from '../../../store/training/step-facts.ts';
import type { Progress } from '../../../workflows/control/messages.ts';

const NOW = Date.now();
const seen = <T>(value: T, problem: string | null = null) => ({ value, asOf: NOW, problem });

/** The page of a run that is over and has this to say of itself. */
async function pageOf(progress: RunView['progress'], steps: StoredStep[] = []): Promise<string> {
  const closed = { workflowId: 'w', runId: 'r', type: 'curriculum', status: 'COMPLETED', closedAt: NOW };
  const view: RunView = {
    run: 'ended',
    spec: null,
    execution: seen({ ...closed, startedAt: NOW, queue: 'gradus', memo: {} } as never),
    progress,
    steps: seen(steps),
    unreadable: [],
  };
  const observer = { look: async () => view } as unknown as RunObserver;
  // eslint-disable-next-line require-yield -- no review is open
  const list = async function* () {};
  const sources = { temporal: { workflow: { list } } } as unknown as Sources;
  const app = new Hono();
  const context = { temporalUi: null, namespace: 'default', actions: false, formToken: 't', secrets: [] };
  runPage(app, { ...context, sources, observer } as unknown as Context & { observer: RunObserver });
  const response = await app.request('/runs/ended');
  expect(response.status, await response.clone().text()).toBe(200);
  return response.text();
}

/** What a run says of itself when it has this status. */
const saying = (status: Progress['status']): Progress => ({
  run: 'ended',
  phase: 'rl',
  status,
  failure: null,
  question: null,
  stages: ['rl'],
  step: null,
  heldOut: null,
  before: null,
  after: null,
  checkpoint: null,
  finished: [],
  seconds: noTime(),
  learnerBackend: null,
  retrying: [],
  incidents: [],
  alarms: [],
  unknownSignals: [],
  changes: [],
});

test('the page of a run that is over is followed until the run has said how it ended', async () => {
  const live = asset('live.js');
  // A query that was lost as the run ended: what was seen last is shown, and the next look may know more.
  expect(await pageOf(seen(saying('stopping'), 'no answer in time'))).toContain(live);
  const over = await pageOf(seen(saying('stopped')));
  expect(over).toContain('stopped');
  expect(over).not.toContain(live);
});

test('the page of a run tells how many tasks came of failures, and what the others were left out by', async () => {
  const rollout = {
    ...noBehaviour(),
    outcomes: noOutcomes(),
    arms: [],
    rewardSum: 0,
    rewardCount: 0,
    sampledTokens: 0,
    sampledLogprob: 0,
    turns: 0,
    failedGroups: [],
    fromFailures: { ...someFailureFacts, tooHard: null },
  };
  const page = await pageOf(seen(saying('completed')), [
    { ...someStep({ stage: 'phase-2', rollout }), answer: null },
  ]);
  const text = page.replaceAll(/<[^>]+>/gu, ' ').replaceAll(/\s+/gu, ' ');
  expect(text).toContain('failed tasks variations kept too hard too easy not solved held out duplicates');
  expect(text).toContain('phase-2 4 8 3 no filter 1 0 1 1 1');
  expect(await pageOf(seen(saying('completed')))).not.toContain('Tasks from failures');
});

test('the page of a run tells what a stage has made of trajectories, and what was left out', async () => {
  const step = { ...someStep({ stage: 'continual', synthesis: someSynthesisFacts }), answer: null };
  const text = (await pageOf(seen(saying('completed')), [step]))
    .replaceAll(/<[^>]+>/gu, ' ')
    .replaceAll(/\s+/gu, ' ');
  expect(text).toContain('duplicates first actions plans choices too few alternatives');
  expect(text).toContain('continual 8 1 1 1 5 5 9 1 0 20 2 3');
  expect(await pageOf(seen(saying('completed')))).not.toContain('Synthesis');
});
