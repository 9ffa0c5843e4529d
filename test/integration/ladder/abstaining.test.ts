import { creditBy } from '../../support/algorithm.ts';
import { beforeAll, describe, expect, test } from 'vitest';
import { createAssessment } from '../../../activities/ladder/assessment.ts';
import { settleEscalation } from '../../../activities/ladder/settle-escalation.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { trainingSamples } from '../../../core/algorithms/training-sample.ts';
import { putAbstention } from '../../../activities/verification/verdict-cache.ts';
import { noCalibration } from '../../../core/ladder/calibration.ts';
import type { Calibration } from '../../../core/ladder/calibration.ts';
import { RandomStream } from '../../../core/random.ts';
import type { RewardSpec } from '../../../core/schema/reward.ts';
import type { TierSpec } from '../../../core/schema/verification.ts';
import type { Environment } from '../../../environments/contract/environment.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { moleculesEnvironment } from '../../../environments/families/molecules/environment.ts';
import { tierSpec } from '../../support/tier-specs.ts';
import { openTestStore } from '../../support/test-store.ts';
import { answered, judgedGroup, keepAnswer, rewardBy, viewOf } from '../../support/ladder-groups.ts';
import type { Found } from '../../support/ladder-groups.ts';

// A policy that may find answers which look right and which no higher tier can judge, on the real activities and store.

const { store } = await openTestStore();

const { signal } = new AbortController();
/** What a policy can answer, and what becomes of it on the ladder. */
const ANSWERS: { answer: string; fast: number; deep: Found }[] = [
  { answer: 'nonsense', fast: 0, deep: { kind: 'scored', score: 0 } },
  { answer: 'poor', fast: 1, deep: { kind: 'scored', score: 0.2 } },
  { answer: 'good', fast: 1, deep: { kind: 'scored', score: 0.8 } },
  { answer: 'knot', fast: 1, deep: { kind: 'abstained', type: 'embedding', reason: 'none' } },
];

/** Where a policy may find itself when it answers, all as probable, and with what logits it then begins. */
type Positions = Record<string, number[]>;
const ONE: Positions = { anywhere: [0, 1, -1, -1] };
const UNLUCKY: Positions = {
  lucky: [-Infinity, -Infinity, 0, -Infinity],
  /** Nothing good can be said any more: what can be earned is below the mean of the group. */
  hopeless: [0, 1, -Infinity, -1],
};

/** Tasks at which all that can be judged is poor tempt to what cannot. */
const toy = (faults?: Record<string, number>): Environment => ({
  ...moleculesEnvironment(),
  name: 'toy',
  tools: [],
  verifiers: [
    {
      name: 'form',
      version: '1',
      tier: 'fast',
      cost: { seconds: 0, usd: 0 },
      verify: ({ answer }) => ({
        kind: 'score',
        score: ANSWERS.find((one) => one.answer === answer)?.fast ?? 1,
      }),
    },
    {
      name: 'deep',
      version: '1',
      tier: 'simulation',
      cost: { seconds: 1, usd: 0 },
      subject: ({ answer }) => answer,
      served: { by: 'pool', pool: 'none' },
      ...(faults && { faults }),
    },
  ],
  task: (ref) => ({ ref, prompt: '' }),
});

const softmax = (logits: readonly number[]): number[] => {
  const most = Math.max(...logits);
  const parts = logits.map((logit) => Math.exp(logit - most));
  const sum = parts.reduce((a, b) => a + b);
  return parts.map((part) => part / sum);
};

interface Training {
  /** Over the spec's defaults. */
  deep?: Partial<TierSpec>;
  faults?: Record<string, number>;
  positions?: Positions;
  steps?: number;
}

/** Trains tables of logits by the batches that the ladder's outcomes make; gives how often each answer comes where. */
async function train(run: string, { deep, faults, positions = ONE, steps = 30 }: Training) {
  const environment = toy(faults);
  const environments = inThisProcess([environment]);
  const tiers = [tierSpec('form', 'fast'), tierSpec('deep', 'simulation', deep)];
  const reward = rewardBy(tiers[0]!);
  let calibrations: Calibration[] = [noCalibration()];
  const tables = Object.values(positions).map((logits) => [...logits]);
  for (let step = 1; step <= steps; step++) {
    const chances = tables.map(softmax);
    const groups = await Promise.all(
      Array.from({ length: 4 }, (_, group) => {
        const random = new RandomStream(1, run, step, group);
        const episodes = Array.from({ length: 8 }, (_, sample) => {
          const position = Math.floor(random.uniform() * tables.length);
          let left = random.uniform();
          const found = chances[position]!.findIndex((chance) => (left -= chance) < 0);
          const answer = found < 0 ? ANSWERS.length - 1 : found;
          return answered(ANSWERS[answer]!.answer, sample, position * ANSWERS.length + answer);
        });
        const ref = { environment: 'toy', split: 'train' as const, level: 1, index: group };
        return judgedGroup(
          store,
          environment,
          ref,
          episodes,
          { run, stage: 'rl', step, id: `group-${group}` },
          reward,
        );
      }),
    );
    const settled = await settleEscalation(
      { store, environments },
      {
        run,
        verification: { rungs: tiers, offerLateFor: 0, counts: 'computations', evaluateBy: 'deep' },
        calibrations,
        steps: [{ stage: 'rl', step, groups }],
        came: [[], []],
        ledger: { writer: 'run', sequence: step },
        reward,
      },
      signal,
    );
    calibrations = settled.calibrations;
    const judged = await Promise.all(
      settled.groups.map(({ trajectories }) => loadTrajectories(store, trajectories!)),
    );
    const { sequences } = trainingSamples(judged, creditBy({}));
    for (const { tokens, streams } of sequences) {
      const position = Math.floor(tokens[1]! / ANSWERS.length);
      const logits = tables[position]!;
      logits.forEach((_, i) => {
        const step = Number(tokens[1]! % ANSWERS.length === i) - chances[position]![i]!;
        logits[i]! += 0.08 * streams.advantages![1]! * step;
      });
    }
  }
  const [last] = tables.slice(-1);
  return Object.fromEntries(softmax(last!).map((chance, i) => [ANSWERS[i]!.answer, chance]));
}

describe('a policy that can answer what no higher tier can judge', () => {
  beforeAll(async () => {
    const ref = { environment: 'toy', split: 'train' as const, level: 1, index: 0 };
    for (const { answer, deep } of ANSWERS) await keepAnswer(store, toy(), ref, answer, 'deep', deep);
  });

  test('does not drift there: by default a silence about the subject is worth nothing', async () => {
    const chances = await train('default', {});
    expect(chances['good']).toBeGreaterThan(0.9);
    expect(chances['knot']).toBeLessThan(0.03);
  });

  test('does not drift there by default where all that it can still earn is below the mean of its group', async () => {
    const chances = await train('hopeless', { positions: UNLUCKY, steps: 60 });
    expect(chances['poor']).toBeGreaterThan(0.9);
    expect(chances['knot']).toBeLessThan(0.03);
  });

  test('hides there, once all that it can still earn is below that mean, where a spec has such answers teach nothing', async () => {
    const chances = await train('neutral', { deep: { abstains: 'abstained' } });
    expect(chances['good']).toBeGreaterThan(0.8);
    expect(chances['knot']).toBeLessThan(0.2);
    const hopeless = await train('hiding', {
      deep: { abstains: 'abstained' },
      positions: UNLUCKY,
      steps: 60,
    });
    expect(hopeless['knot']).toBeGreaterThan(0.9);
  });

  test('leaves them where the verifier says that they are the subject’s fault', async () => {
    const chances = await train('fault', { deep: { abstains: 'abstained' }, faults: { embedding: 0 } });
    expect(chances['good']).toBeGreaterThan(0.9);
    expect(chances['knot']).toBeLessThan(0.03);
  });

  test('prefers what was judged good to what is only expected to be so', async () => {
    const chances = await train('expected', { deep: { abstains: 'expected' } });
    expect(chances['good']).toBeGreaterThan(chances['knot']!);
  });
});

test('molecules without an arrangement in space earn nothing, and evaluations count them', async () => {
  const molecules = moleculesEnvironment();
  await molecules.prepare!();
  const environments = inThisProcess([molecules]);
  const tiers = [
    tierSpec('molecule', 'fast', { passAtLeast: 1 }),
    tierSpec('xtb', 'simulation'),
    tierSpec('dft', 'high-fidelity', { passAtLeast: 0.9 }),
  ];
  const reward = rewardBy(tiers[0]!);
  const ref = { environment: 'molecules', split: 'train' as const, level: 3, index: 0 };
  const impossible = ['C1#CC1', 'C1#CCC1', 'C1#CC#C1'];
  const answers = [...impossible, 'CCO'];
  for (const answer of answers) {
    for (const verifier of ['xtb', 'dft']) {
      await keepAnswer(
        store,
        molecules,
        ref,
        answer,
        verifier,
        answer === 'CCO'
          ? { kind: 'measured', values: { gap_eV: 6, dipole_D: 1.5 } }
          : // What plugins/molecules/chemistry says of them.
            { kind: 'abstained', type: 'embedding', reason: 'no arrangement in space was found' },
      );
    }
  }
  const episodes = answers.map((answer, sample) => answered(answer, sample, 1));
  const place = { run: 'strained', stage: 'rl', step: 1, id: 'group-0' };
  const group = await judgedGroup(store, molecules, ref, episodes, place, reward);
  const settled = await settleEscalation(
    { store, environments },
    {
      run: 'strained',
      verification: { rungs: tiers, offerLateFor: 0, counts: 'computations', evaluateBy: 'xtb' },
      calibrations: [noCalibration(), noCalibration()],
      steps: [{ stage: 'rl', step: 1, groups: [group] }],
      came: [[], [], []],
      ledger: { writer: 'run', sequence: 1 },
      reward,
    },
    signal,
  );
  const { episodes: judged } = await loadTrajectories(store, settled.groups[0]!.trajectories!);
  for (const { outcome } of judged.slice(0, impossible.length)) {
    expect(outcome).toMatchObject({ kind: 'scored', reward: 0, components: [{ passed: false }] });
  }
  expect(settled.groups[0]!.arms).toMatchObject([{ successes: 0, trials: answers.length }]);

  const [measured] = await createAssessment({ store, environments }).settleAssessment(
    {
      run: 'strained',
      stage: 'rl.heldout',
      step: 1,
      groups: [group],
      rungs: [tiers[0]!, tiers[1]!],
      reward,
      writer: 'evaluation',
    },
    signal,
  );
  // Ethanol passes xTB.
  expect(measured!.arms).toMatchObject([{ successes: 1, trials: answers.length }]);
});

test('an evaluation counts what its tier cannot judge as no success, and leaves out what it missed this time', async () => {
  const environment = toy();
  const environments = inThisProcess([environment]);
  const tiers = [tierSpec('form', 'fast'), tierSpec('deep', 'simulation')] as [TierSpec, TierSpec];
  const reward = rewardBy(tiers[0]);
  const ref = { environment: 'toy', split: 'heldout' as const, level: 1, index: 0 };
  const answers = ['good', 'knot', 'nonsense', 'crash'];
  const episodes = answers.map((answer, sample) => answered(answer, sample, 1));
  const { digest } = await viewOf(environment, 'deep', ref, episodes.at(-1)!);
  const crashed = { verifier: 'deep', version: '1', digest };
  await putAbstention(store, 'measured', crashed, 'crashed', signal);
  const place = { run: 'measured', stage: 'rl.heldout', step: 1, id: 'group-0' };
  const groups = [await judgedGroup(store, environment, ref, episodes, place, reward)];
  const request = {
    run: 'measured',
    stage: 'rl.heldout',
    step: 1,
    groups,
    rungs: tiers,
    reward,
    writer: 'e',
  };
  const [measured] = await createAssessment({ store, environments }).settleAssessment(request, signal);
  expect(measured!.arms).toMatchObject([{ successes: 1, trials: 3 }]);
  expect(measured!.outcomes).toMatchObject({ scored: 2, abstained: 2 });
});

test('what rules say of the samples of a task stays with one that only a higher tier can judge', async () => {
  const shy: Environment = {
    ...toy(),
    verifiers: toy().verifiers.map((one) =>
      one.tier === 'fast'
        ? {
            ...one,
            verify: ({ answer }) =>
              answer === 'good' ? { kind: 'abstain', reason: 'too hard' } : { kind: 'score', score: 1 },
          }
        : one,
    ),
  };
  const tiers = [tierSpec('form', 'fast'), tierSpec('deep', 'simulation')];
  const reward: RewardSpec = {
    ...rewardBy(tiers[0]!),
    rules: [
      { kind: 'diversity', of: 'answer', by: 'count', weight: 0.4, gatedBy: null },
      { kind: 'agreement', by: 'share', weight: 0.3, gatedBy: null },
    ],
  };
  const ref = { environment: 'toy', split: 'train' as const, level: 1, index: 0 };
  for (const { answer, deep } of ANSWERS) await keepAnswer(store, shy, ref, answer, 'deep', deep);
  const episodes = ['good', 'good', 'poor'].map((answer, sample) => answered(answer, sample, 1));
  const place = { run: 'shy', stage: 'rl', step: 1, id: 'group-0' };
  const group = await judgedGroup(store, shy, ref, episodes, place, reward);
  const settled = await settleEscalation(
    { store, environments: inThisProcess([shy]) },
    {
      run: 'shy',
      verification: { rungs: tiers, offerLateFor: 0, counts: 'computations', evaluateBy: 'deep' },
      calibrations: [noCalibration()],
      steps: [{ stage: 'rl', step: 1, groups: [group] }],
      came: [[], []],
      ledger: { writer: 'run', sequence: 1 },
      reward,
    },
    signal,
  );
  const { episodes: judged } = await loadTrajectories(store, settled.groups[0]!.trajectories!);
  const half = 1 / Math.sqrt(2);
  expect(judged[0]!.outcome).toMatchObject({
    kind: 'scored',
    reward: 0.8 + 0.4 * half + 0.3 * 0.5,
    components: [
      { verifier: 'ladder', score: 0.8 },
      { verifier: 'rule:diversity', score: half },
      { verifier: 'rule:agreement', score: 0.5 },
    ],
  });
  expect(judged[2]!.outcome).toMatchObject({ components: [{ score: 0.2 }, { score: 1 }, { score: 0 }] });
});
