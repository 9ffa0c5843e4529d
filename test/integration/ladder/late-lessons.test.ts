import { algorithmWith, creditBy } from '../../support/algorithm.ts';
import { expect, test } from 'vitest';
import { settleEscalation } from '../../../activities/ladder/settle-escalation.ts';
import { createCurriculum } from '../../../activities/training/curriculum.ts';
import { reweighStep } from '../../../runs/reweigh/reweigh.ts';
import type { ReweighedStep } from '../../../runs/reweigh/reweigh.ts';
import { runKey } from '../../../store/keys.ts';
import { runClaims } from '../../../store/run/run-claim.ts';
import { readLedger } from '../../../store/ladder/ledger.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { trainingSamples } from '../../../core/algorithms/training-sample.ts';
import { groupRelative } from '../../support/group-relative.ts';
import { noCalibration } from '../../../core/ladder/calibration.ts';
import { LADDER } from '../../../core/ladder/requests.ts';
import type { SettleResult, StepGroups } from '../../../core/ladder/requests.ts';
import { isRewarded, trainableReward } from '../../../core/episode/outcome.ts';
import type { BlobRef } from '../../../core/refs.ts';
import type { CurriculumSpec } from '../../../core/schema/curriculum-spec.ts';
import type { TierSpec } from '../../../core/schema/verification.ts';
import type { Environment } from '../../../environments/contract/environment.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { moleculesEnvironment } from '../../../environments/families/molecules/environment.ts';
import { tierSpec } from '../../support/tier-specs.ts';
import { openTestStore } from '../../support/test-store.ts';
import { answered, judgedGroup, keepAnswer, rewardBy, viewOf } from '../../support/ladder-groups.ts';

// What is learnt, all in all, of episodes whose verdicts come one after the other, on the real activities and store.

const { store } = await openTestStore();

const FAST: Record<string, number> = { a: 1, b: 1, c: 1, d: 1, e: 0.3 };
const ANSWERS = Object.keys(FAST);
const { signal } = new AbortController();
const reward = rewardBy(tierSpec('form', 'fast'));

const environment = (name: string): Environment => ({
  ...moleculesEnvironment(),
  name,
  tools: [],
  verifiers: [
    {
      name: 'form',
      version: '1',
      tier: 'fast',
      cost: { seconds: 0, usd: 0 },
      verify: ({ answer }) => ({ kind: 'score', score: FAST[answer!]! }),
    },
    {
      name: 'deep',
      version: '1',
      tier: 'simulation',
      cost: { seconds: 1, usd: 0 },
      subject: ({ answer, task }) => ({ answer, of: task.ref.environment }),
      served: { by: 'pool', pool: 'none' },
    },
  ],
  task: (ref) => ({ ref, prompt: '' }),
});

/** A run whose steps roll out the same answers, and that hears of verdicts as the test says. */
class Heard {
  readonly run: string;
  readonly ref;
  private readonly environment: Environment;
  private readonly rungs: TierSpec[];
  private readonly steps: StepGroups[] = [];
  private calibrations = [noCalibration()];

  constructor(run: string, missing: TierSpec['missing']) {
    this.run = run;
    this.environment = environment(run);
    this.ref = { environment: run, split: 'train' as const, level: 1, index: 0 };
    this.rungs = [tierSpec('form', 'fast'), tierSpec('deep', 'simulation', { wait: false, missing })];
  }

  say(answer: string, score: number): Promise<string> {
    return keepAnswer(store, this.environment, this.ref, answer, 'deep', { kind: 'scored', score });
  }

  async digest(answer: string): Promise<string> {
    return (await viewOf(this.environment, 'deep', this.ref, answered(answer, 0, 0))).digest;
  }

  async step(came: string[]): Promise<SettleResult> {
    const step = this.steps.length + 1;
    const place = { run: this.run, stage: 'rl', step, id: 'group-0' };
    const episodes = ANSWERS.map((answer, sample) => answered(answer, sample, sample));
    this.steps.push({
      stage: 'rl',
      step,
      groups: [await judgedGroup(store, this.environment, this.ref, episodes, place, reward)],
    });
    const settled = await settleEscalation(
      { store, environments: inThisProcess([this.environment]) },
      {
        run: this.run,
        verification: { rungs: this.rungs, offerLateFor: 8, counts: 'computations', evaluateBy: 'form' },
        calibrations: this.calibrations,
        steps: this.steps,
        came: [[], came],
        ledger: { writer: 'run', sequence: step },
        reward,
      },
      signal,
    );
    this.calibrations = settled.calibrations;
    for (const one of this.steps) {
      one.settled = one.groups.map((ref, i) => settled.settled[ref.key] ?? one.settled?.[i] ?? ref);
    }
    return settled;
  }

  /** What was last made known of the first step's episodes. */
  outcomes = async () =>
    (await loadTrajectories(store, this.steps[0]!.settled![0]!)).episodes.map(({ outcome }) => outcome!);
}

/** Advantages by sample, as they come into the batch. */
async function advantagesIn(ref: BlobRef, scaleRewards: 'group' | 'none'): Promise<number[]> {
  const group = await loadTrajectories(store, ref);
  const found = ANSWERS.map(() => 0);
  for (const { tokens, streams } of trainingSamples([group], creditBy({ scaleRewards })).sequences) {
    found[tokens[1]!] = streams.advantages![1]!;
  }
  return found;
}

test.each([
  ['group', 'cheaper'],
  ['none', 'cheaper'],
  ['group', 'pending'],
] as const)(
  'all advantages together are those by the last verdicts, of every member (%s, %s)',
  async (scale, missing) => {
    const run = new Heard(`late-${scale}-${missing}`, missing);
    await run.say('a', 0.8);
    await run.say('b', 0.2);
    const first = await run.step([]);
    let sum = await advantagesIn(first.groups[0]!.trajectories!, scale);
    for (const [answer, score] of [
      ['c', 0.9],
      ['d', 0.1],
    ] as const) {
      const { offered } = await run.step([await run.say(answer, score)]);
      expect(offered[0]!.key).toContain('rl/000001/');
      const more = await advantagesIn(offered[0]!, scale);
      // Who was judged before has the difference, too: mean and deviation are others now.
      expect(Math.abs(more[0]!)).toBeGreaterThan(0.01);
      sum = sum.map((one, i) => one + more[i]!);
    }
    const last = (await run.outcomes()).map((outcome) => trainableReward(outcome, 'train'));
    expect(last.slice(0, 4)).toEqual([0.8, 0.2, 0.9, 0.1]);
    const advantages = groupRelative(last, scale);
    sum.forEach((one, i) => expect(one).toBeCloseTo(advantages[i]!, 5));
  },
);

test('a verdict that only confirms is written down and teaches nothing again', async () => {
  const run = new Heard('confirmed', 'cheaper');
  await run.say('a', 0.8);
  await run.say('b', 0.2);
  await run.say('c', 0.5);
  await run.step([]);
  const before = (await run.outcomes())[3]!;
  const said = isRewarded(before) ? before.components.find(({ verifier }) => verifier === LADDER)! : null;
  // The line through the others' verdicts is what stands for this one's.
  expect(said).toMatchObject({ score: 1, version: 'form@1' });
  const digest = await run.say('d', said!.worth!);
  const { offered } = await run.step([digest]);
  expect(offered).toEqual([]);
  expect((await run.outcomes())[3]).toMatchObject({
    components: [{ version: 'deep@1', score: said!.worth }],
  });
  const entries = (await readLedger(store, run.run)).filter(
    (entry) => entry.kind === 'offered' || (entry.kind === 'decision' && entry.candidate.includes('/rl/1/')),
  );
  expect(entries.filter(({ kind }) => kind === 'offered')).toEqual([]);
});

test('candidates of one group are not rewarded for the tier that judged them', async () => {
  const run = new Heard('one-scale', 'cheaper');
  await run.say('a', 0.005);
  await run.say('b', 0.01);
  await run.say('c', 0);
  for (let step = 0; step < 3; step++) await run.step([]);
  const rewards = (await run.outcomes()).map((outcome) => trainableReward(outcome, 'train')!);
  // Nobody has asked about d, which passed the lowest tier with 1 as a, b and c did.
  expect(rewards[3]).toBeLessThan(0.3);
  // What was rejected gets no more than it was given.
  expect(rewards[4]).toBeLessThanOrEqual(0.3);
});

test('a step is re-weighed as the ladder judged it, with what it learnt late and without what only was confirmed', async () => {
  const run = new Heard('reweighed', 'cheaper');
  const { algorithm, plan } = algorithmWith({ kind: 'grpo', importanceCap: 2 });
  const stage = { kind: 'rl', name: 'rl', algorithm, plan, numGenerations: 5, collect: { kind: 'sample' } };
  await store.putIfAbsent(runKey(run.run), runClaims, {
    spec: {
      run: run.run,
      reward,
      verification: { offerLateFor: 8 },
      sampling: { maxTurns: 1, maxCompletionTokens: 8 },
      stages: [stage],
    } as unknown as CurriculumSpec,
  });
  const curriculum = createCurriculum({ store, environments: new Map() });
  const learn = async (step: number, { groups, offered }: SettleResult): Promise<ReweighedStep> => {
    await curriculum.buildBatch(
      {
        run: run.run,
        stage: 'rl',
        step,
        groups: [...groups.map(({ trajectories }) => trajectories!), ...offered],
        algorithm,
        plan,
        reward,
        policy: '',
        updates: { minibatch: 8, epochs: 1, seed: 1 },
      },
      signal,
    );
    return reweighStep(store, { run: run.run, stage: 'rl', step }, new Map());
  };
  await run.say('a', 0.8);
  await run.say('b', 0.2);
  const first = await learn(1, await run.step([]));
  expect(first.reproduced).toEqual({ exactly: true });
  expect(first.tasks).toHaveLength(1);
  const second = await learn(2, await run.step([await run.say('c', 0.9)]));
  expect(second.reproduced).toEqual({ exactly: true });
  // The step's own samples, and those of the one before.
  expect(second.tasks.map(({ episodes }) => episodes[0]!.group)).toEqual([
    'group-0.judged',
    'group-0.late-rl-2',
  ]);
});
