import { Client, Connection } from '@temporalio/client';
import { beforeAll, expect, test, vi } from 'vitest';
import { madeGroup, madeSpec, MADE_STAGE } from '../../support/made-run.ts';
import type { Episode, RolloutGroup } from '../../../core/episode/episode.ts';
import { noOutcomes } from '../../../core/episode/outcome.ts';
import { divergenceText } from '../../../runs/comparison/divergence-words.ts';
import { divergenceOf, MOST_LOOKS } from '../../../runs/comparison/divergence.ts';
import { HeldOutCurves } from '../../../runs/overview/held-out-curves.ts';
import { RunObserver } from '../../../runs/overview/run.ts';
import { inParallel } from '../../../store/in-parallel.ts';
import { runKey } from '../../../store/keys.ts';
import { runClaims } from '../../../store/run/run-claim.ts';
import { putStepFacts } from '../../../store/training/step-facts.ts';
import { putTrajectories } from '../../../store/rollout/trajectories.ts';
import { pagesOf } from './plain-runs.ts';
import { someStep } from '../../support/some-step.ts';
import { openTestStore } from '../../support/test-store.ts';

// Steps of many groups, groups of many samples, episodes of many turns, and runs that differ in many steps: made up, and
// stored as a run stores them.

const { server, store } = await openTestStore();
const ask = pagesOf(store);
const SIZE = { steps: 10, groups: 2050, samples: 1 };
const SAMPLES = 130_000;
const TURNS = 1000;

const claim = (run: string) =>
  store.putIfAbsent(runKey(run), runClaims, { execution: run, spec: madeSpec(run) });
const keep = (step: number, group: RolloutGroup) =>
  putTrajectories(store, { run: 'large', stage: MADE_STAGE, step }, group);
const step = (number: number, more = ''): string => `/runs/large/steps/${MADE_STAGE}/${number}${more}`;

beforeAll(async () => {
  await claim('large');
  const numbers = Array.from({ length: SIZE.groups }, (_, group) => group);
  await inParallel(numbers, (group) => keep(1, madeGroup(SIZE, 1, group)));

  const one = madeGroup({ ...SIZE, samples: 4 }, 2, 0);
  const scored = one.episodes.find(({ outcome }) => outcome?.kind === 'scored')!;
  const short: Episode = {
    ...scored,
    tokens: [],
    mask: [],
    samplerLogprobs: [],
    turns: [],
    status: { kind: 'truncated', limit: 'tokens' },
    outcome: { kind: 'truncated', limit: 'tokens', reward: 0, components: [] },
  };
  const episodes = Array.from({ length: SAMPLES }, (_, sample) => ({ ...short, sample }));
  await keep(2, { ...one, episodes });
  await keep(4, { ...one, episodes: episodes.slice(0, 40) });

  const turns = Array.from({ length: TURNS }, (_, turn) => ({
    ...scored.turns[0]!,
    start: turn * 100,
    end: turn * 100 + 90,
    text: `the turn ${turn + 1} ${'x'.repeat(1000)}`,
  }));
  const tokens = turns.flatMap(() => Array.from({ length: 100 }, (_, i) => i));
  const long = {
    ...scored,
    turns,
    tokens,
    mask: tokens.map(() => 1 as const),
    samplerLogprobs: tokens.map(() => -1),
  };
  await keep(3, { ...one, episodes: [long] });
}, 600_000);

test('a step of more groups than a page reads is read a page at a time', async () => {
  const { status, text } = await ask(step(1));
  expect(status).toBe(200);
  expect(text).toContain('Of 2050 groups a page reads 100');
  expect(text).toContain('page 1 of 21');
  expect(text.length).toBeLessThan(100_000);
  const last = await ask(step(1, '?page=21'));
  expect(last.text).toContain('page 21 of 21');
  expect(last.text).toMatch(/no sample has solved \d+ of 50 /);
  expect((await ask(step(1, '?page=0'))).status).toBe(400);
}, 600_000);

test('a group of more samples than a call has arguments has a step, and pages of samples', async () => {
  const { status, text } = await ask(step(2));
  expect(status).toBe(200);
  expect(text).toContain(`Rewards of ${SAMPLES.toLocaleString('en')} episodes`);
  expect(text.length).toBeLessThan(100_000);
  const group = await ask(`/runs/large/groups/${MADE_STAGE}/4/0?page=2`);
  expect(group.text).toMatch(/Sample 32 /);
  expect(group.text).not.toMatch(/Sample 31 /);
}, 600_000);

test('an episode of a thousand turns is shown a hundred at a time, the last ones too', async () => {
  const at = `/runs/large/episodes/${MADE_STAGE}/3/0/0`;
  const first = await ask(at);
  expect(first.text).toContain('the turn 100 ');
  expect(first.text).not.toContain('the turn 101 ');
  expect(first.text.length).toBeLessThan(200_000);
  expect((await ask(`${at}?page=10`)).text).toContain('the turn 1000 ');
}, 600_000);

test('of more steps that differ than are looked into it is said how many were not', async () => {
  const beyond = 6;
  for (const run of ['one', 'other']) {
    await claim(run);
    await inParallel(
      Array.from({ length: MOST_LOOKS + beyond }, (_, i) => i + 1),
      (number) =>
        putStepFacts(
          store,
          run,
          someStep({
            stage: MADE_STAGE,
            step: number,
            stageStep: number,
            decision: { kind: 'continue', reason: run, action: null, question: null },
          }),
        ),
    );
  }
  const divergence = await divergenceOf(store, ['one', 'other']);
  expect(divergence).toMatchObject({ parting: null, unlooked: beyond });
  const text = divergenceText(divergence).join(' ');
  expect(text).not.toContain('what was learnt');
  expect(text).toContain(`first ${MOST_LOOKS} were looked into, and ${beyond} were not`);
  expect(text).toContain('compare one other --episodes');
  const all = await divergenceOf(store, ['one', 'other'], { episodes: true });
  expect(divergenceText(all).join(' ')).not.toContain('were not');
}, 600_000);

test('the curve of a long run is not waited for, and is there for whoever looks again', async () => {
  await claim('measured');
  const arm = { environment: 'calculator', level: 1 };
  const heldOut = {
    arms: [{ arm, successes: 1, trials: 2 }],
    outcomes: noOutcomes(),
    meanReward: 0,
    sampledTokens: 0,
  };
  for (const number of [1, 2])
    await putStepFacts(store, 'measured', someStep({ step: number, stageStep: number, heldOut }));
  const curves = new HeldOutCurves(store, { patienceMs: 0 });
  expect(await curves.of(['measured'])).toEqual(new Map());
  // Those that are being read are not begun once more, nor too many of them.
  expect(await curves.of(['measured', 'large', 'one', 'other', 'many'])).toEqual(new Map());
  const patient = new HeldOutCurves(store, { patienceMs: 30_000 });
  expect(await patient.of(['measured'])).toEqual(new Map([['measured', [0.5, 0.5]]]));
}, 600_000);

test('of long runs no more steps are kept than there is room for: of those that were looked at last', async () => {
  for (const run of ['first', 'second']) {
    await claim(run);
    for (let number = 1; number <= 3; number++)
      await putStepFacts(store, run, someStep({ step: number, stageStep: number }));
  }
  const temporal = new Client({ connection: Connection.lazy({ address: '127.0.0.1:1' }) });
  const observer = new RunObserver({ store, temporal }, { mostSteps: 4 });
  for (const run of ['first', 'second']) expect((await observer.look(run)).steps.value).toHaveLength(3);
  await server.kill();
  await vi.waitFor(
    async () => expect((await observer.look('second')).steps.problem).toEqual(expect.any(String)),
    { timeout: 120_000, interval: 200 },
  );
  expect((await observer.look('second')).steps.value).toHaveLength(3);
  expect((await observer.look('first')).steps.value).toBeNull();
}, 600_000);
