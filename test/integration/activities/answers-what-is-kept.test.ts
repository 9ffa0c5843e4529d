import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAssessment } from '../../../activities/assessment.ts';
import { createCurriculum } from '../../../activities/curriculum.ts';
import { createTraining } from '../../../activities/learner.ts';
import { createLadder } from '../../../activities/ladder.ts';
import type { PolicyPool } from '../../../activities/policy-pool.ts';
import { createRollout } from '../../../activities/rollout.ts';
import { loadBatch, keepBatch } from '../../../activities/store/batches.ts';
import { saveCheckpoint } from '../../../activities/store/checkpoints.ts';
import { readLedger } from '../../../activities/store/ledger.ts';
import type { ObjectStore } from '../../../activities/store/object-store.ts';
import { loadTrajectories, keepTrajectories } from '../../../activities/store/trajectories.ts';
import { tally } from '../../../activities/tally.ts';
import { keepVerdict } from '../../../activities/verdict-cache.ts';
import { createVerification } from '../../../activities/verifiers.ts';
import type { Episode, RolloutGroup } from '../../../core/episode.ts';
import { emptyAccount } from '../../../core/ladder/budget.ts';
import { noCalibration } from '../../../core/ladder/calibration.ts';
import { LADDER } from '../../../core/ladder/requests.ts';
import type { AssessRequest, Climbing, PlanRequest } from '../../../core/ladder/requests.ts';
import type { BlobRef } from '../../../core/refs.ts';
import type { GroupRequest, TrainRequest } from '../../../core/requests.ts';
import type { RewardSpec, RungSpec } from '../../../core/spec.ts';
import { openDialect } from '../../../engine/dialect/open-dialect.ts';
import type { Learner, TrainBatch, TrainState } from '../../../engine/learner/contract.ts';
import { Tokenizer } from '../../../engine/tokenizer/tokenizer.ts';
import { defineEnvironment } from '../../../environments/contract.ts';
import {
  calculatorEnvironment,
  slowCalculatorEnvironment,
} from '../../../environments/calculator/environment.ts';
import calculatorWithLadder from '../../support/ladder-calculator.ts';
import { ScriptedPolicy } from '../../support/scripted-policy.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { checkpointAt, randomWeights, smallConfig } from '../store/fixtures.ts';
import { TestServer } from '../store/server.ts';
import type { Speaking } from '../../../activities/policy-pool.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';

// Each activity here is carried out twice: what the first attempt answered was lost, and the world has changed when the
// second one looks. Others may have acted on what the first one left in the store, so the second must answer just that.

let server: TestServer;
let store: ObjectStore;
beforeAll(async () => {
  server = await TestServer.start();
  store = await server.connect();
});
afterAll(async () => {
  store?.close();
  await server?.remove();
});

const signal = new AbortController().signal;
const environments = inThisProcess([calculatorWithLadder]);
const task = (index: number) => ({
  environment: calculatorWithLadder.name,
  split: 'train' as const,
  level: 1,
  index,
});
const reward: RewardSpec = {
  components: [{ verifier: LADDER, role: 'outcome', weight: 1, gatedBy: null }],
  truncated: 'train',
  ladder: { verifier: 'is-number', passAtLeast: 0 },
};
const checkpoint = { manifest: { key: 'c', sha256: 'c', bytes: 1 }, weights: 'w', step: 0 };
const sampling = { temperature: 1, topK: 0, topP: 1, maxTurns: 8, maxCompletionTokens: 60 };

const rung = (verifier: string, tier: RungSpec['tier']): RungSpec => ({
  verifier,
  tier,
  passAtLeast: 0,
  escalate: { valueAtLeast: 1, uncertaintyAtLeast: 1 },
  wait: true,
  deadlineSeconds: 60,
  missing: 'cheaper',
  abstains: 'zero',
  budget: {},
  concurrency: 4,
  reviewers: 1,
});
const rungs = [rung('is-number', 'fast'), rung('near', 'simulation')];

/** A group that the fast tier has judged: these answers to one task, which no other test has. */
async function judgedGroup(run: string, index: number, answers: readonly number[]): Promise<BlobRef> {
  const component = { verifier: LADDER, version: 'is-number@1', score: 0.6, contribution: 0.6 };
  const group: RolloutGroup = {
    id: 'group-0',
    weights: '0',
    temperature: 1,
    tasks: [{ ref: task(index), prompt: '', promptTokens: [1] }],
    episodes: answers.map((answer, sample): Episode => ({
      sample,
      task: 0,
      tokens: [2],
      mask: [1],
      logprobs: [-1],
      turns: [],
      status: { kind: 'answered', answer: String(answer) },
      outcome: { kind: 'scored', reward: 0.6, components: [component] },
    })),
  };
  return (await keepTrajectories(store, { run, stage: 'rl', step: 1 }, group)).ref;
}

const climbing = (run: string, groups: BlobRef[]): Climbing => ({
  run,
  verification: { rungs, offerLateFor: 0, counts: 'computations' as const, evaluateBy: 'is-number' },
  calibrations: [noCalibration()],
  steps: [{ stage: 'rl', step: 1, groups }],
  came: [[], []],
  ledger: { writer: 'run', sequence: 1 },
});

/** A verdict of the rung `near` comes from another run. */
async function answerFor(digest: string, score: number): Promise<void> {
  const asked = { verifier: 'near', version: '1', digest };
  await keepVerdict(
    store,
    asked,
    { format: 'gradus.verdict/1', ...asked, spent: { seconds: 1, usd: 0 }, kind: 'scored', score },
    signal,
  );
}

const planRequest = (run: string, groups: BlobRef[]): PlanRequest => ({
  ...climbing(run, groups),
  rung: 1,
  again: false,
  budget: { count: 3 },
  account: emptyAccount(),
  underWay: [],
});

test('a plan that was kept is the plan, though verdicts came since', async () => {
  const ladder = createLadder({ store, environments });
  const request = planRequest('plan', [await judgedGroup('plan', 1, [1, 2, 3, 4, 5])]);
  const first = await ladder.planClimb(request, signal);
  expect(first.digests).toHaveLength(3);
  await answerFor(first.digests[0]!, 0.5);
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
    const group = await judgedGroup(run, 10 + writes, [1, 2, 3, 4, 5, 6]);
    // Three rungs, so that planning the last one counts pairs of the first two.
    const high = rung('exact', 'high-fidelity');
    const three = {
      rungs: [...rungs, high],
      offerLateFor: 0,
      counts: 'computations' as const,
      evaluateBy: 'is-number',
    };
    const base = { ...planRequest(run, [group]), verification: three, came: [[], [], []] };
    const known = await createLadder({ store, environments }).planClimb(
      { ...base, calibrations: [noCalibration(), noCalibration()] },
      signal,
    );
    await answerFor(known.digests[0]!, 0.7);
    const request: PlanRequest = {
      ...base,
      calibrations: known.calibrations,
      rung: 2,
      ledger: { writer: 'run', sequence: 2 },
    };
    await createLadder({ store: dyingAfter(writes), environments })
      .planClimb(request, signal)
      .catch((error: Error) => expect(error.message).toBe('killed'));
    await answerFor(known.digests[1]!, 0.6);
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
      return ['keep', 'putSame'].includes(String(name))
        ? (...args: unknown[]) => dying(() => method(...args))
        : method;
    },
  });
}

test('a step is settled as it was first, whatever verdict came since', async () => {
  const ladder = createLadder({ store, environments });
  const group = await judgedGroup('settle', 2, [1, 2, 3]);
  const { digests } = await ladder.planClimb(planRequest('settle', [group]), signal);
  const request = { ...climbing('settle', [group]), reward, ledger: { writer: 'run', sequence: 2 } };
  await answerFor(digests[0]!, 0.9);
  const first = await ladder.settleClimb(request, signal);
  await answerFor(digests[1]!, 0.1);
  const second = await ladder.settleClimb(request, signal);
  expect(second).toEqual(first);
  const [judged] = second.groups;
  expect(judged).toMatchObject(tally(reward, await loadTrajectories(store, judged!.trajectories!)));
});

test.each([0, 1, 2])(
  'a settlement that died after write %i is completed from what is kept',
  async (writes) => {
    const run = `settle-dies-${writes}`;
    const groups = [await judgedGroup(run, 20 + writes, [1, 2, 3])];
    const ladder = createLadder({ store, environments });
    const { digests } = await ladder.planClimb(planRequest(run, groups), signal);
    const request = { ...climbing(run, groups), reward, ledger: { writer: 'run', sequence: 2 } };
    await answerFor(digests[0]!, 0.9);
    await expect(
      createLadder({ store: dyingAfter(writes), environments }).settleClimb(request, signal),
    ).rejects.toThrow('killed');
    await answerFor(digests[1]!, 0.1);
    const { groups: settled, calibrations } = await ladder.settleClimb(request, signal);
    const kept = await loadTrajectories(store, settled[0]!.trajectories!);
    expect(settled[0]).toMatchObject(tally(reward, kept));
    // Outcomes, calibration and ledger saw one world.
    const byRung = kept.episodes.filter(({ outcome }) => JSON.stringify(outcome).includes('near@1'));
    expect(calibrations[0]!.n).toBe(byRung.length);
    const ends = (await readLedger(store, run)).filter(
      (entry) => entry.kind === 'decision' && entry.verifier === 'near' && entry.decision === 'accept',
    );
    expect(ends).toHaveLength(byRung.length);
  },
);

test('an evaluation answers from the groups that were kept', async () => {
  const assessment = createAssessment({ store, environments });
  const groups = [await judgedGroup('assess', 3, [1, 2])];
  const { digests } = await createLadder({ store, environments }).planClimb(
    planRequest('assess', groups),
    signal,
  );
  const request: AssessRequest = {
    run: 'assess',
    stage: 'after',
    step: 1,
    groups,
    rungs: [rungs[0]!, rungs[1]!],
    reward,
    writer: 'evaluation-1',
  };
  const first = await assessment.settleAssessment(request, signal);
  for (const digest of digests) await answerFor(digest, 0.9);
  expect(await assessment.settleAssessment(request, signal)).toEqual(first);
});

const groupRequest = (run: string, environment: string, more: Partial<GroupRequest> = {}): GroupRequest => ({
  run,
  seed: 1,
  stage: 'rl',
  step: 1,
  group: 0,
  firstTask: 0,
  retries: 0,
  tasks: [{ ...task(0), environment }],
  samples: 1,
  checkpoint,
  sampling,
  reward: {
    components: [{ verifier: 'moody', role: 'outcome', weight: 1, gatedBy: null }],
    truncated: 'train',
  },
  ...more,
});

const tokenizer = Tokenizer.fromJson(
  readFileSync(new URL('../../fixtures/tokenizer/tokenizer.json', import.meta.url), 'utf8'),
);

/** Decoders that say just this. */
function saying(turn: string): PolicyPool {
  const policy = new ScriptedPolicy([{ tokens: tokenizer.encode(turn) }]);
  const lease = {
    policy,
    tokenizer,
    config: { ...smallConfig, maxPositions: 512 },
    dialectFor: ({ tools }: Speaking) =>
      openDialect(
        tokenizer,
        {},
        tools.map(({ described }) => described),
      ),
    release: () => undefined,
  };
  return { lease: () => Promise.resolve(lease) } as unknown as PolicyPool;
}

test('the calls that are due are those of the part that is kept, though the episode goes otherwise the second time', async () => {
  const environment = slowCalculatorEnvironment({ seconds: 0, failureProbability: 0 });
  const known = inThisProcess([environment]);
  const group = groupRequest('advance', environment.name);
  const called = '<tool_call>{"name":"calculator","arguments":{"expression":"7*3"}}</tool_call>';
  const attempt = (turn: string) =>
    createRollout({ store, policies: saying(turn), environments: known }).advance({ group }, signal);
  const { spans: _, ...first } = await attempt('<answer>21</answer>');
  const { spans: __, ...second } = await attempt(called);
  expect(second).toEqual(first);
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
  const group = groupRequest('verify', 'moody');
  const { part } = await createRollout({
    store,
    policies: saying('<answer>21</answer>'),
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
  const files = new Map([
    ...content.files,
    ['tokenizer.json', readFileSync(new URL('../../fixtures/tokenizer/tokenizer.json', import.meta.url))],
  ]);
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
  const { model: _, warmStart: __, ...rest } = tinySpec();
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
    advantages: Float32Array.of(0, 1),
    rolloutLogprobs: Float32Array.of(0, -1),
  };
  const { ref: batch } = await keepBatch(store, 'runs/restless/batches/rl/1.safetensors', one);
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
    minibatch: 1,
    epochs: 1,
    seed: 1,
    reference: null,
  } as unknown as TrainRequest;
  const { spans: _, ...first } = await createTraining({ store, learner }).trainStep(request, signal);
  const { spans: __, ...second } = await createTraining({ store, learner }).trainStep(request, signal);
  expect(second).toEqual(first);
});
