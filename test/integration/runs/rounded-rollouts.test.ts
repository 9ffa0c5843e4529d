import { describe, expect, test } from 'vitest';
import { replayStored } from '../../../activities/replay/replay.ts';
import { createDecoder } from '../../../engine/decoder/decoder.ts';
import { findAddon } from '../../../engine/decoder/native/addon.ts';
import { checkpointOf } from '../../../store/training/find-checkpoints.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { openPlainRuns } from './plain-runs.ts';

// Runs whose decoder rounds the weights of each checkpoint.

const { store, train, environments, policies } = await openPlainRuns();
const tiny = tinySpec({ maxSteps: 2, groupsPerStep: 4, groupsPerWorkflow: 4 });

describe.runIf('addon' in findAddon())('rollouts with rounded weights', () => {
  test.each(['bfloat16', 'int8'] as const)(
    'train behind the gap that each step tells, and are replayed to the bit: %s',
    async (dtype) => {
      const policy = { kind: 'onnx', dtype };
      await train(dtype, { ...tiny, policy });
      const steps = (await readSteps(store, dtype)).filter(({ stage }) => stage === 'rl');
      expect(steps).toHaveLength(2);
      for (const { learner } of steps) {
        // Far above the rounding of engines in float32, and within what a step is trained on.
        expect(learner!.logprobGapMean).toBeGreaterThan(1e-4);
        expect(learner!.logprobGapMean).toBeLessThan(0.05);
        // Its tokens are weighed by importance, and the weights are near to 1.
        expect(learner!.effectiveSamples!.tokens).toBeGreaterThan(0.9);
        expect(learner!.effectiveSamples!.tokens).toBeLessThan(1);
      }
      const place = { run: dtype, stage: 'rl', step: 1, group: 0, episode: 3 };
      const { replay } = await replayStored(
        { place, alternatives: 0, fork: null },
        {
          store,
          environments,
          createDecoder: () => createDecoder({ threads: 2 }),
          signal: new AbortController().signal,
        },
      );
      expect(replay).toMatchObject({ equal: true, differences: [] });
      expect(replay!.sampled).toBeGreaterThan(0);
    },
    300_000,
  );

  test('a step further from the learner than the bound is not trained', async () => {
    const policy = { kind: 'onnx', dtype: 'bfloat16', maxLogprobGap: 1e-6 };
    await expect(train('bounded', { ...tiny, policy })).rejects.toMatchObject({ type: 'logprob-gap' });
  }, 600_000);

  test('one checkpoint in two dtypes is two policies, each with a version of its own', async () => {
    const checkpoint = await checkpointOf(store, { run: 'bfloat16', step: null });
    const exact = await policies.lease(checkpoint);
    const rounded = await policies.lease(checkpoint, { dtype: 'bfloat16' });
    expect(rounded.policy).not.toBe(exact.policy);
    expect(exact.policy.version).toBe(checkpoint.weights);
    expect(rounded.policy.version).toBe(`${checkpoint.weights}-bfloat16`);
    exact.release();
    rounded.release();
  });
});
