import { afterAll, beforeAll, expect, test } from 'vitest';
import { PolicyPool } from '../../../activities/rollout/policy-pool.ts';
import { plainRun } from '../../../bench/plain-run.ts';
import { METHOD_KINDS } from '../../../core/algorithms/index.ts';
import { createDecoder } from '../../../engine/decoder/decoder.ts';
import type { Learner } from '../../../engine/learner/contract.ts';
import { createLocalLearner } from '../../../engine/learner/local-learner.ts';
import { builtInEnvironments } from '../../../environments/index.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { reweighStep } from '../../../observe/reweigh.ts';
import type { ReweighedStep } from '../../../observe/reweigh.ts';
import { readSteps } from '../../../store/step-facts.ts';
import { openTestStore } from '../../support/test-store.ts';
import { tinySpec } from '../../support/tiny-spec.ts';

// One run that takes a step or two by every method, and what its steps would have taught by other rewards.

const { store } = await openTestStore();
const policies = new PolicyPool(store, () => createDecoder({ threads: 1 }));
let learner: Learner;

/** A teacher is a run of its own, and what it teaches has no part in rewards. */
const KINDS = METHOD_KINDS.filter((kind) => kind !== 'opd');
const OF_METHOD: Partial<Record<(typeof METHOD_KINDS)[number], object>> = {
  ppo: { klCoefficient: 0.05 },
  'reinforce++': { baseline: 'none', klCoefficient: 0.05 },
  dapo: { maxRefills: 2 },
  agentq: { alpha: 0.8, margin: 0 },
  vapo: { critic: { pretrainingSteps: 1 } },
  hindsight: { corrections: 2 },
};
const tiny = tinySpec({ maxSteps: 2, groupsPerStep: 4 });
const [warmStart, rl] = tiny.stages;
const nameOf = (kind: string): string => kind.replaceAll('+', 'p');
const stageOf = (name: string, algorithm: object, more: object = {}) => ({
  ...rl,
  name,
  numGenerations: 4,
  algorithm: { minibatch: 16, ...algorithm },
  graduation: { ...rl.graduation, successAtLeast: 0.5, everySteps: 2, tasks: 8 },
  ...more,
});
const spec = {
  ...tiny,
  reward: {
    components: [...tiny.reward.components, { verifier: 'sub-goals', role: 'bonus', weight: 0 }],
    rules: [
      { kind: 'process', verifier: 'sub-goals', by: 'turns', weight: 0.05 },
      { kind: 'linear-length', target: 8, limit: 30, weight: 0.1 },
      { kind: 'confidence', weight: 0.05, gatedBy: 'format' },
    ],
    normalization: 'environment',
  },
  stages: [
    warmStart,
    ...KINDS.map((kind) =>
      stageOf(
        nameOf(kind),
        { kind, ...OF_METHOD[kind] },
        {
          ...(kind === 'dapo' && { numGenerations: 2 }),
          ...(kind === 'agentq' && { numGenerations: 8, collect: { kind: 'tree', roots: 2, branches: 3 } }),
        },
      ),
    ),
    stageOf('stale', { kind: 'grpo', importanceCap: 2 }, { collect: { kind: 'stored', stage: 'ppo' } }),
  ],
};

let places: { stage: string; step: number }[];
beforeAll(async () => {
  learner = await createLocalLearner();
  const environments = inThisProcess(builtInEnvironments);
  await plainRun(spec, { store, environments, policies, learner, run: 'methods' });
  const steps = await readSteps(store, 'methods');
  places = steps.flatMap(({ stage, stageStep, rollout }) => (rollout ? [{ stage, step: stageStep }] : []));
}, 300_000);
afterAll(async () => {
  await learner.close();
  await policies.close();
});

const by = (place: { stage: string; step: number }, set: Record<string, string> = {}) =>
  reweighStep(store, { run: 'methods', ...place }, new Map(Object.entries(set)));
const unchanged = ({ tasks }: ReweighedStep): void => {
  for (const { deviation, teaches, episodes } of tasks) {
    expect(deviation.after).toBe(deviation.before);
    expect(teaches.after).toBe(teaches.before);
    for (const one of episodes) {
      expect(one.reward.after).toBe(one.reward.before);
      expect(one.advantage.after).toBe(one.advantage.before);
      expect(one.flipped).toBe(0);
    }
  }
};

test('the reward as it is gives the stored rewards and the batch of every method, to the bit', async () => {
  expect(new Set(places.map(({ stage }) => stage))).toEqual(new Set([...KINDS.map(nameOf), 'stale']));
  for (const place of places) {
    const step = await by(place);
    expect([place, step.reproduced.exactly === 'no-batch' ? { exactly: true } : step.reproduced]).toEqual([
      place,
      { exactly: true },
    ]);
    expect(step.limits).toEqual([]);
    unchanged(step);
  }
}, 60_000);
