import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TrainResult } from '../../../core/requests/learner.ts';
import { loadCheckpoint } from '../../../store/training/checkpoints.ts';
import { LEARNER_CASES } from '../../support/engine/learner-cases.ts';
import { apart, sizeOf, twoSteps } from '../../support/learner-steps.ts';
import { openTestStore } from '../../support/test-store.ts';
import { TorchLines, withTorch } from '../../support/torch-learner.ts';

// Two ranks under torchrun, with gloo on this machine's processor: each has half of the weights and of the micro-batches.

const { server, store } = await openTestStore();

const CASES = [
  'supervised',
  'clipped, k2 to a reference',
  'clipped among kept ids, entropy bonus',
  'clipped with a critic',
  'gspo, several updates',
  'dpo, smoothed, several updates',
  'distill, JSD, two teachers',
  'an adapter with a critic and a reference',
  'checkpointed layers, small micro-batches',
];

await withTorch((python) => {
  let one: TorchLines;
  let two: TorchLines;
  beforeAll(() => {
    one = new TorchLines(python, server.environment());
    two = new TorchLines(python, server.environment(), 2);
  });
  afterAll(async () => {
    await Promise.all([one?.close(), two?.close()]);
  });

  test.each(CASES.map((name, i) => [name, i] as const))(
    'two ranks make the steps of one: %s',
    async (name, i) => {
      const found = LEARNER_CASES.find((given) => given.name === name)!;
      // Several micro-batches an update, so that there is something to share out.
      const compute = {
        precision: 'float32' as const,
        gradientCheckpointing: false,
        ...found.more?.compute,
        microBatchTokens: 64,
      };
      const shared = { ...found, more: { ...found.more, compute } };
      const wanted = await twoSteps(store, `one-${i}`, shared, (request) =>
        one.result<TrainResult>('trainStep', request),
      );
      const got = await twoSteps(store, `two-${i}`, shared, (request) =>
        two.result<TrainResult>('trainStep', request),
      );
      for (const [step, { checkpoint, metrics, backend }] of got.entries()) {
        expect(backend).toMatch(/2 ranks$/);
        expect(metrics.loss).toBeCloseTo(wanted[step]!.metrics.loss!, 5);
        expect(metrics.gradientNorm).toBeCloseTo(wanted[step]!.metrics.gradientNorm!, 4);
        const { state: a } = await loadCheckpoint(store, wanted[step]!.checkpoint);
        const { state: b } = await loadCheckpoint(store, checkpoint);
        const [mine, its] = [a.adapter?.weights ?? a.weights, b.adapter?.weights ?? b.weights];
        expect(apart(mine, its) / sizeOf(mine)).toBeLessThan(1e-6);
        if (a.critic)
          expect(apart(a.critic.weights, b.critic!.weights) / sizeOf(a.critic.weights)).toBeLessThan(1e-6);
      }
    },
    180_000,
  );
});
