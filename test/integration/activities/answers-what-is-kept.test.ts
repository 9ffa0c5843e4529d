import { MockActivityEnvironment } from '@temporalio/testing';
import { expect, test } from 'vitest';
import { createAssessment } from '../../../activities/ladder/assessment.ts';
import { createCurriculum } from '../../../activities/training/curriculum.ts';
import { createTraining } from '../../../activities/training/learner.ts';
import { createLadder } from '../../../activities/ladder/ladder.ts';
import { createRollout } from '../../../activities/rollout/rollout.ts';
import { createTools } from '../../../activities/rollout/tools.ts';
import { loadBatch, putBatch } from '../../../store/training/batches.ts';
import { readChanges } from '../../../store/run/changes.ts';
import { saveCheckpoint } from '../../../store/training/checkpoints.ts';
import { readLedger } from '../../../store/ladder/ledger.ts';
import type { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { tally } from '../../../activities/verification/tally.ts';
import { createVerification } from '../../../activities/verification/verifiers.ts';
import { noCalibration } from '../../../core/ladder/calibration.ts';
import type { AssessRequest, PlanRequest } from '../../../core/ladder/requests.ts';
import type { TrainRequest } from '../../../core/requests/learner.ts';
import type { AdvanceProgress, CallToolRequest, CallToolResult } from '../../../core/requests/rollout.ts';
import type { StoredChange } from '../../../core/run-change.ts';
import type { Learner, TrainBatch, TrainState } from '../../../engine/learner/contract.ts';
import { defineEnvironment } from '../../../environments/contract/environment.ts';
import {
  calculatorEnvironment,
  slowCalculatorEnvironment,
} from '../../../environments/families/calculator/environment.ts';
import {
  escalating,
  keepNear,
  numbers,
  planRequest,
  REWARD,
  TIERS,
  task,
} from '../../support/escalating-numbers.ts';
import { tokenizer, tokenizerJson } from '../../support/fixture-tokenizer.ts';
import { groupRequest } from '../../support/group-request.ts';
import calculatorWithLadder from '../../support/ladder-calculator.ts';
import { tierSpec } from '../../support/tier-specs.ts';
import { poolSaying } from '../../support/saying.ts';
import { openTestStore } from '../../support/test-store.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { checkpointAt, randomWeights, smallConfig } from '../../support/store/fixtures.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';

// Each activity here is carried out twice: what the first attempt answered was lost, and the world has changed when the
// second one looks. Others may have acted on what the first one left in the store, so the second must answer just that.

const { store } = await openTestStore();

const signal = new AbortController().signal;
const environments = inThisProcess([calculatorWithLadder]);
test('a plan that was kept is the plan, though verdicts came since', async () => {
  const ladder = createLadder({ store, environments });
  const request = planRequest('plan', [await numbers(store, 'plan', [1, 2, 3, 4, 5], 1)]);
  const first = await ladder.planClimb(request, signal);
  expect(first.digests).toHaveLength(3);
  await keepNear(store, first.digests[0]!, 0.5);
  const second = await ladder.planClimb(request, signal);
  expect(second).toEqual(first);
  const asked = JSON.parse(new TextDecoder().decode(await store.get(second.asks!))) as {
    ask: { request: { digest: string } };
  }[];
  expect(asked.map(({ ask }) => ask.request.digest)).toEqual(second.digests);
});

test.each([1, 2, 3, 4, 5])(
  'a plan whose attempt died after write %i goes on from what is kept, in asks, ledger and calibration alike',
  async (writes) => {
    const run = `dies-${writes}`;
    const group = await numbers(store, run, [1, 2, 3, 4, 5, 6], 10 + writes);
    // Three tiers, so that planning the last one counts pairs of the first two.
    const two = planRequest(run, [group]);
    const high = tierSpec('exact', 'high-fidelity', { passAtLeast: 0 });
    const verification = { ...two.verification, rungs: [...TIERS, high] };
    const base = { ...two, verification, came: [[], [], []] };
    const known = await createLadder({ store, environments }).planClimb(
      { ...base, calibrations: [noCalibration(), noCalibration()] },
      signal,
    );
    await keepNear(store, known.digests[0]!, 0.7);
    const request: PlanRequest = {
      ...base,
      calibrations: known.calibrations,
      rung: 2,
      ledger: { writer: 'run', sequence: 2 },
    };
    await createLadder({ store: dyingAfter(writes), environments })
      .planClimb(request, signal)
      .catch((error: Error) => expect(error.message).toBe('killed'));
    await keepNear(store, known.digests[1]!, 0.6);
    const plan = await createLadder({ store, environments }).planClimb(request, signal);
    expect(await createLadder({ store, environments }).planClimb(request, signal)).toEqual(plan);
    const escalated = (await readLedger(store, run)).flatMap((entry) =>
      entry.kind === 'decision' && entry.verifier === 'exact' && entry.decision === 'escalate'
        ? [entry.digest]
        : [],
    );
    expect(escalated.toSorted()).toEqual(plan.digests.toSorted());
    // Every pair counts once: what this plan did not count, the next one does.
    const next = await createLadder({ store, environments }).planClimb(
      { ...request, calibrations: plan.calibrations, again: true, ledger: { writer: 'run', sequence: 3 } },
      signal,
    );
    expect(next.calibrations[0]!.n).toBe(2);
  },
);

/** The store for a process that is killed when it has written so many objects. */
function dyingAfter(writes: number): ObjectStore {
  let left = writes;
  const dying = async <T>(work: () => Promise<T>): Promise<T> => {
    if (left-- <= 0) throw new Error('killed');
    return work();
  };
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const method = value.bind(target) as (...args: unknown[]) => Promise<unknown>;
      return ['putIfAbsent', 'putSame'].includes(String(name))
        ? (...args: unknown[]) => dying(() => method(...args))
        : method;
    },
  });
}

test('a step is settled as it was first, whatever verdict came since', async () => {
  const ladder = createLadder({ store, environments });
  const group = await numbers(store, 'settle', [1, 2, 3], 2);
  const { digests } = await ladder.planClimb(planRequest('settle', [group]), signal);
  const request = {
    ...escalating('settle', [group]),
    reward: REWARD,
    ledger: { writer: 'run', sequence: 2 },
  };
  await keepNear(store, digests[0]!, 0.9);
  const first = await ladder.settleClimb(request, signal);
  await keepNear(store, digests[1]!, 0.1);
  const second = await ladder.settleClimb(request, signal);
  expect(second).toEqual(first);
  const [judged] = second.groups;
  expect(judged).toMatchObject(await tally(REWARD, await loadTrajectories(store, judged!.trajectories!)));
});

test.each([0, 1, 2])(
  'a settlement that died after write %i is completed from what is kept',
  async (writes) => {
    const run = `settle-dies-${writes}`;
    const groups = [await numbers(store, run, [1, 2, 3], 20 + writes)];
    const ladder = createLadder({ store, environments });
    const { digests } = await ladder.planClimb(planRequest(run, groups), signal);
    const request = { ...escalating(run, groups), reward: REWARD, ledger: { writer: 'run', sequence: 2 } };
    await keepNear(store, digests[0]!, 0.9);
    await expect(
      createLadder({ store: dyingAfter(writes), environments }).settleClimb(request, signal),
    ).rejects.toThrow('killed');
    await keepNear(store, digests[1]!, 0.1);
    const { groups: settled, calibrations } = await ladder.settleClimb(request, signal);
    const kept = await loadTrajectories(store, settled[0]!.trajectories!);
    expect(settled[0]).toMatchObject(await tally(REWARD, kept));
    // Outcomes, calibration and ledger saw one world.
    const byTier = kept.episodes.filter(({ outcome }) => JSON.stringify(outcome).includes('near@1'));
    expect(calibrations[0]!.n).toBe(byTier.length);
    const ends = (await readLedger(store, run)).filter(
      (entry) => entry.kind === 'decision' && entry.verifier === 'near' && entry.decision === 'accept',
    );
    expect(ends).toHaveLength(byTier.length);
  },
);

test('an evaluation answers from the groups that were kept', async () => {
  const assessment = createAssessment({ store, environments });
  const groups = [await numbers(store, 'assess', [1, 2], 3)];
  const { digests } = await createLadder({ store, environments }).planClimb(
    planRequest('assess', groups),
    signal,
  );
  const request: AssessRequest = {
    run: 'assess',
    stage: 'after',
    step: 1,
    groups,
    rungs: [...TIERS],
    reward: REWARD,
    writer: 'evaluation-1',
  };
  const first = await assessment.settleAssessment(request, signal);
  for (const digest of digests) await keepNear(store, digest, 0.9);
  expect(await assessment.settleAssessment(request, signal)).toEqual(first);
});

test('the calls that are due are those of the part that is kept, though the episode goes otherwise the second time', async () => {
  const environment = slowCalculatorEnvironment({ seconds: 0, failureProbability: 0 });
  const known = inThisProcess([environment]);
  const group = groupRequest('advance', [{ ...task(0), environment: environment.name }]);
  const called = '<tool_call>{"name":"calculator","arguments":{"expression":"7*3"}}</tool_call>';
  const told: AdvanceProgress[] = [];
  const attempt = (turn: string) =>
    createRollout({ store, policies: poolSaying(turn), environments: known }).advance(
      { group },
      signal,
      (progress) => void told.push(progress),
    );
  const { spans: _, ...first } = await attempt('<answer>21</answer>');
  const { spans: __, ...second } = await attempt(called);
  expect(second).toEqual(first);
  // What heartbeats tell is of the attempt itself: one that answers, and one that waits.
  const tokens = [tokenizer.encode('<answer>21</answer>'), tokenizer.encode(called)].map(
    (turn) => turn.length,
  );
  expect(told).toEqual(tokens.map((sampled) => ({ done: 1, total: 1, tokens: sampled })));
});

test('a long call whose answer is kept is not made again', async () => {
  let calls = 0;
  const slow = slowCalculatorEnvironment({ seconds: 0, failureProbability: 0 });
  const [tool] = slow.tools;
  const environment = defineEnvironment({
    ...slow,
    tools: [
      {
        ...tool!,
        run: (...asked) => {
          calls++;
          return tool!.run!(...asked);
        },
      },
    ],
  });
  const known = inThisProcess([environment]);
  const group = groupRequest('calls', [{ ...task(0), environment: environment.name }]);
  const policies = poolSaying(
    '<tool_call>{"name":"calculator","arguments":{"expression":"7*3"}}</tool_call>',
  );
  const rollout = createRollout({ store, policies, environments: known });
  const { pages } = await rollout.advance({ group }, signal);
  const [call] = await rollout.dueCalls({ group, page: pages[0]! }, signal);
  const tools = createTools({ store, environments: known });
  const asked: CallToolRequest = { run: group.run, call: call!, part: pages[0]! };
  const attempt = (): Promise<CallToolResult> =>
    new MockActivityEnvironment().run((request: CallToolRequest) => tools.callTool(request), asked);
  const first = await attempt();
  const second = await attempt();
  expect(second.observation).toEqual(first.observation);
  expect(calls).toBe(1);
});

test('a change of a run is kept once, whoever brings it again, and another one gets the next number', async () => {
  const { keepChange } = createCurriculum({ store, environments });
  const made = { number: 1, after: 0, update: 'a', at: '2026-11-23T00:00:00.000Z', stage: 'rl', step: null };
  const keep = (over: Partial<StoredChange>) =>
    keepChange({ run: 'changed', made: { ...made, ...over } }, signal);
  const first = await keep({ maxSteps: { rl: 9 } });
  expect(first).toEqual({ ...made, maxSteps: { rl: 9 } });
  // A reset brings it again, later and elsewhere.
  expect(await keep({ maxSteps: { rl: 9 }, at: '2026-11-24T00:00:00.000Z', step: 4 })).toEqual(first);
  const budgets = { near: { count: 3, usd: null } };
  const second = await keep({ update: 'b', budgets });
  expect(second).toEqual({ ...made, number: 2, update: 'b', budgets });
  expect(await readChanges(store, 'changed')).toEqual([first, second]);
  expect(await readChanges(store, 'never-changed')).toEqual([]);
});

test('a group counts as the verdicts that were kept say, though the verifier has changed its mind', async () => {
  let score = 1;
  const environment = defineEnvironment({
    ...calculatorEnvironment('moody'),
    verifiers: [
      {
        name: 'moody',
        version: '1',
        tier: 'fast',
        cost: { seconds: 0, usd: 0 },
        verify: () => ({ kind: 'score', score }),
      },
    ],
  });
  const known = inThisProcess([environment]);
  const group = groupRequest('verify', [{ ...task(0), environment: 'moody' }], {
    reward: {
      components: [{ verifier: 'moody', role: 'outcome', weight: 1, gatedBy: null }],
      truncated: 'train',
    },
  });
  const { part } = await createRollout({
    store,
    policies: poolSaying('<answer>21</answer>'),
    environments: known,
  }).advance({ group }, signal);
  const verification = createVerification({ store, environments: known });
  const { spans: _, ...first } = await verification.verifyGroup({ group, part, followed: [] }, signal);
  score = 0;
  const { spans: __, ...second } = await verification.verifyGroup({ group, part, followed: [] }, signal);
  expect(first.rewardSum).toBe(1);
  expect(second).toEqual(first);
});

async function savedCheckpoint(run: string, step: number) {
  const content = checkpointAt(step, smallConfig, run);
  const files = new Map([...content.files, ['tokenizer.json', Buffer.from(tokenizerJson)]]);
  return saveCheckpoint(store, { ...content, files });
}

test('demonstrations are counted in the batch that was kept, though the environment shows others now', async () => {
  let turns = 1;
  const calculator = calculatorEnvironment('shows');
  const environment = defineEnvironment({
    ...calculator,
    demonstrate: () => ({ turns: [{ answer: '9'.repeat(turns) }], weight: 1 }),
  });
  const curriculum = createCurriculum({ store, environments: inThisProcess([environment]) });
  const request = {
    run: 'demonstrations',
    seed: 1,
    stage: 'warm-start',
    round: 1,
    arms: [{ environment: 'shows', level: 1 }],
    count: 4,
    updates: { minibatch: 4, epochs: 1, seed: 1 },
    checkpoint: await savedCheckpoint('demonstrations', 0),
  };
  const { spans: _, ...first } = await curriculum.buildDemonstrations(request, signal);
  turns = 20;
  const { spans: __, ...second } = await curriculum.buildDemonstrations(request, signal);
  expect(second).toEqual(first);
  expect((await loadBatch(store, second.batch!)).tokens).toHaveLength(second.tokens);
});

test('a run begins with the checkpoint that it was opened with, though the other run has gone on', async () => {
  await savedCheckpoint('other', 1);
  const { model: _, ...rest } = tinySpec();
  const curriculum = createCurriculum({
    store,
    environments: inThisProcess([calculatorEnvironment()]),
  });
  const request = {
    spec: { ...rest, model: { from: 'other' } },
    workflowId: 'opened',
    firstExecutionRunId: 'execution-1',
  };
  const first = await curriculum.openRun(request, signal);
  await savedCheckpoint('other', 2);
  expect(await curriculum.openRun(request, signal)).toEqual(first);
});

/** A learner that never computes the same twice, as on a GPU. */
function restlessLearner(): Learner {
  let steps = 0;
  return {
    backend: 'restless',
    step: (before: TrainState) => {
      steps++;
      const metrics = { ...noMetrics, loss: steps };
      const state = {
        ...before,
        weights: randomWeights(smallConfig, 100 + steps),
        updates: before.updates + 1,
      };
      return Promise.resolve({ state, metrics });
    },
    score: () => Promise.reject(new Error('nobody asks for scores here')),
    close: () => Promise.resolve(),
  };
}

const noMetrics = {
  loss: 0,
  gradientNorm: 0,
  entropy: 0,
  kl: 0,
  clipFraction: 0,
  logprobGapMax: null,
  logprobGapMean: null,
  updates: 1,
  tokens: 1,
  seconds: 0,
};

test('a step of a learner that is not repeatable is the step that was kept: its weights and its metrics', async () => {
  const learner = restlessLearner();
  const one: TrainBatch = {
    tokens: Int32Array.of(1, 2),
    offsets: Int32Array.of(0, 2),
    mask: Float32Array.of(0, 1),
    streams: { advantages: Float32Array.of(0, 1) },
    sequences: {},
    updates: [Int32Array.of(0)],
  };
  const { ref: batch } = await putBatch(store, 'runs/restless/batches/rl/1.safetensors', one);
  const request = {
    run: 'restless',
    stage: 'rl',
    stageStep: 1,
    step: 1,
    parent: await savedCheckpoint('restless', 0),
    batch,
    objective: { kind: 'supervised' },
    optimizer: {},
    resetOptimizer: false,
    seed: 1,
    reference: null,
  } as unknown as TrainRequest;
  const { spans: _, ...first } = await createTraining({ store, learner }).trainStep(request, signal);
  const { spans: __, ...second } = await createTraining({ store, learner }).trainStep(request, signal);
  expect(second).toEqual(first);
});
