import { expect, test } from 'vitest';
import { randomKey } from '../../../../core/random.ts';
import { backendKind, createDecoderBackend } from '../../../../engine/decoder/load-backend.ts';
import { Scheduler } from '../../../../engine/decoder/scheduler.ts';
import type { SampleResult } from '../../../../engine/policy.ts';
import { flat, randomWeights, smallConfig } from '../../../support/engine/random-model.ts';

test('an order that is given the moment the last one is answered is taken', async () => {
  const answered: ((result: SampleResult) => void)[] = [];
  const scheduler = new Scheduler(
    ({ config, weights }) => createDecoderBackend(backendKind(), config, weights, { threads: 1 }),
    { cacheBytes: 1e6, maxBatch: 4 },
    {
      done: () => undefined,
      sampled: (id, result) => answered[id]!(result),
      failed: (_, error) => {
        throw error;
      },
    },
  );
  const weights = flat(smallConfig, randomWeights(smallConfig));
  await scheduler.submit({ type: 'load', id: 0, config: smallConfig, weights, exclusive: false });
  const sample = (id: number) =>
    new Promise<SampleResult>((resolve) => {
      answered[id] = resolve;
      const request = {
        session: 'one',
        prefix: [1, 2, 3],
        continuation: [],
        maxNewTokens: 1 + (id % 2),
        stopTokens: [],
        sampling: { temperature: 1, topK: 0, topP: 1 },
        key: randomKey(id),
      };
      void scheduler.submit({ type: 'sample', id, request });
    });
  for (let id = 1; id <= 40; id++) expect((await sample(id)).tokens).toHaveLength(1 + (id % 2));
  await scheduler.dispose();
});
