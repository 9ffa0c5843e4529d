import { expect, test } from 'vitest';
import { lossOf } from '../../../../../engine/learner/losses/index.ts';
import type { DistributionLoss } from '../../../../../engine/learner/losses/loss.ts';
import { distillationProgram } from '../../../../../engine/learner/programs/distillation-program.ts';
import { uploadWeights } from '../../../../../engine/learner/step/device-state.ts';
import { loadTensorflowBackend } from '../../../../../engine/learner/tensorflow/backend.ts';
import { lively, TINY } from '../../../../support/engine/tiny.ts';

const backend = await loadTensorflowBackend('cpu');
const { tf } = backend;

test('of distributions over a large vocabulary few are in memory at once', async () => {
  const [positions, vocabSize] = [32, 20_000];
  const config = { ...TINY, vocabSize, layers: 1, tieEmbeddings: true };
  const loss = lossOf({
    kind: 'distill',
    divergence: { kind: 'jsd', beta: 0.5 },
    temperature: 1,
    aggregation: 'token',
    maxCompletionTokens: positions,
    teacherWeights: [0.5, 0.5],
  }) as DistributionLoss;
  const compute = { precision: 'float32', gradientCheckpointing: false } as const;
  const program = distillationProgram(backend, { config, compute }, [config, config], loss);
  const ids = (of: (i: number) => number) =>
    tf.tensor1d(
      Int32Array.from({ length: positions }, (_, i) => of(i)),
      'int32',
    );
  const each = (value: number) => tf.mul(tf.ones([positions]), value);
  const inputs = [
    ...[1, 2, 3].flatMap((seed) => uploadWeights(backend, config, lively(config, seed))),
    ids((i) => i),
    ids((i) => i + 1),
    tf.zeros([1, positions], 'int32'),
    each(1),
    each(1 / positions),
    each(0.5),
    each(0.5),
  ];
  const before = tf.memory().numBytes;
  const { peakBytes } = await tf.profile(() => tf.tidy(() => program.compute(inputs)));
  expect((peakBytes - before) / (positions * vocabSize * 4)).toBeLessThan(20);
});
