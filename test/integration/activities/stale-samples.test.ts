import { afterAll, beforeAll, expect, test } from 'vitest';
import { PolicyPool } from '../../../activities/rollout/policy-pool.ts';
import { plainRun } from '../../support/plain-run.ts';
import type { StepReport } from '../../../core/ports.ts';
import { createDecoder } from '../../../engine/decoder/decoder.ts';
import type { Learner } from '../../../engine/learner/contract.ts';
import { createLocalLearner } from '../../../engine/learner/local-learner.ts';
import { builtInEnvironments } from '../../../environments/families/index.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { openTestStore } from '../../support/test-store.ts';
import { hardestGoal, tinySpec } from '../../support/tiny-spec.ts';
import { DONE } from '../../support/ended.ts';

// From a spec to weights: what a stage has sampled is learnt from again by methods that weigh it.

const { store } = await openTestStore();
const policies = new PolicyPool(store, () => createDecoder({ threads: 1 }));
let learner: Learner;
beforeAll(async () => {
  learner = await createLocalLearner();
});
afterAll(async () => {
  await learner.close();
  await policies.close();
});

const { stages, ...tiny } = tinySpec({ maxSteps: 2, groupsPerStep: 8 });
const [warmStart, rl] = stages;
const STALE = {
  vtrace: { kind: 'vtrace', klCoefficient: 0.01 },
  retrace: { kind: 'vtrace', target: 'retrace', numIterations: 2 },
  truncated: { kind: 'grpo', importanceCap: 2, beta: 0.01, numIterations: 2 },
  // A policy as small as this fails whole groups.
  masked: { kind: 'dapo', filter: 'reward', importanceCap: 2, importanceRule: 'mask', maxRefills: 0 },
};
const spec = {
  ...tiny,
  stages: [
    warmStart,
    // Far enough for what it has sampled to be stale.
    { ...rl, optimizer: { learningRate: 1e-3 } },
    ...Object.entries(STALE).map(([name, algorithm]) => ({
      ...rl,
      name,
      groupsPerStep: 6,
      algorithm: { minibatch: 16, ...algorithm },
      collect: { kind: 'stored', stage: 'rl' },
      graduation: { ...rl.graduation, tasks: 8, everySteps: 2, successAtLeast: hardestGoal(8, 1) },
    })),
  ],
};

test('V-trace, Retrace and weighted group methods learn from what an earlier policy has sampled', async () => {
  const reports: StepReport[] = [];
  const { end } = await plainRun(spec, {
    store,
    environments: inThisProcess(builtInEnvironments),
    policies,
    learner,
    run: 'stale',
    onStep: (report) => reports.push(report),
  });
  expect(end).toEqual(DONE);
  const of = (name: string) => reports.filter(({ stage }) => stage === name);
  // Its own samples are a stage's as they are: both engines agree on their log-probs.
  for (const { metrics } of of('rl')) expect(metrics!.logprobGapMax).toBeLessThan(1e-3);
  let weights = of('rl').at(-1)!.checkpoint.weights;
  for (const name of Object.keys(STALE)) {
    expect(of(name)).toHaveLength(2);
    for (const { sampledTokens, metrics, checkpoint, entropy } of of(name)) {
      expect([sampledTokens, entropy]).toEqual([0, null]);
      expect(metrics!.logprobGapMax).toBeNull();
      expect(metrics!.gradientNorm).toBeGreaterThan(0);
      expect(metrics!.critic === undefined).toBe(!name.includes('trace'));
      expect(checkpoint.weights).not.toBe(weights);
      weights = checkpoint.weights;
    }
  }
}, 600_000);
