import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { decodeBatch, encodeBatch } from '../../../store/training/batches.ts';
import { findOnPath } from '../../../infra/setup/command.ts';
import { readSafetensors, writeSafetensors } from '../../../engine/safetensors/safetensors.ts';
import type { TrainBatch } from '../../../engine/learner/contract.ts';
import { ROOT, taggedBlock } from '../../support/markdown.ts';

/** One sequence of a single token, and one of three. */
const sampled = (): TrainBatch => ({
  tokens: Int32Array.of(4, 5, 6, 7),
  offsets: Int32Array.of(0, 1, 4),
  mask: Float32Array.of(0, 0, 1, 1),
  streams: {
    advantages: Float32Array.of(0, 0, -1.5, -1.5),
    samplerLogprobs: Float32Array.of(0, 0, -0.25, -3),
  },
  sequences: {},
  updates: [Int32Array.of(1, 0), Int32Array.of(1)],
});

const golden: [name: string, batch: TrainBatch][] = [
  ['sampled', sampled()],
  [
    'everything',
    {
      ...sampled(),
      streams: {
        ...sampled().streams,
        reference: Float32Array.of(0, 0, -0.5, -2),
        values: Float32Array.of(0, 0, 0.5, 0.75),
        returns: Float32Array.of(0, 0, 1, 1),
      },
      sequences: {
        late: Float32Array.of(0, 1),
        pair: Float32Array.of(0, 0),
        label: Float32Array.of(-1, 1),
        teacher: Float32Array.of(-1, 1),
      },
      kept: { ids: Int32Array.of(1, 6, 7), offsets: Int32Array.of(0, 0, 0, 2, 3) },
    },
  ],
  ['stale', { ...sampled(), sequences: { late: Float32Array.of(1, 0), staleness: Float32Array.of(2, 0) } }],
  [
    'mixed',
    {
      ...sampled(),
      streams: { ...sampled().streams, staleness: Float32Array.of(0, 2, 2, 1) },
      sequences: { late: Float32Array.of(0, 1), staleness: Float32Array.of(0, 2) },
    },
  ],
  [
    'empty',
    {
      tokens: new Int32Array(0),
      offsets: Int32Array.of(0),
      mask: new Float32Array(0),
      streams: { advantages: new Float32Array(0) },
      sequences: {},
      updates: [],
    },
  ],
];
const fileOf = (name: string) => path.join(ROOT, 'test/golden/batch', `${name}.safetensors`);

describe.each(golden)('the golden batch "%s"', (name, batch) => {
  test('is read, and written back to the byte', () => {
    const bytes = new Uint8Array(readFileSync(fileOf(name)));
    expect(decodeBatch(bytes)).toEqual(batch);
    expect(encodeBatch(batch)).toEqual(bytes);
  });

  test('is read by the Python of docs/batch.md, too', async () => {
    const python = await findOnPath('python3');
    const program = taggedBlock('docs/batch.md', 'batch-reader');
    const { stdout, stderr } = spawnSync(python!, ['-c', program, fileOf(name)], { encoding: 'utf8' });
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual(inWords(batch));
  });
});

/** As the Python reader says it. */
function inWords({ tokens, mask, offsets, streams, sequences, kept, updates }: TrainBatch) {
  const sets = Array.from(tokens, (_, i) => [
    ...(kept?.ids.subarray(kept.offsets[i], kept.offsets[i + 1]) ?? []),
  ]);
  return {
    sequences: [...offsets.subarray(1)].map((end, i) => ({
      ...Object.fromEntries(
        Object.entries({ tokens, mask, ...streams }).map(([name, values]) => [
          name === 'samplerLogprobs' ? 'rollout' : name,
          [...values.subarray(offsets[i], end)],
        ]),
      ),
      ...(kept && { kept: sets.slice(offsets[i], end) }),
      ...Object.fromEntries(Object.entries(sequences).map(([name, values]) => [name, values[i]])),
    })),
    updates: updates.map((update) => [...update]),
  };
}

test.each([
  ['another length', { mask: new Float32Array(3) }],
  ['a stream of another length', { streams: { values: new Float32Array(5) } }],
  ['a number of another count of sequences', { sequences: { late: new Float32Array(4) } }],
  ['offsets that do not end with the tokens', { offsets: Int32Array.of(0, 3) }],
  ['offsets that do not start at 0', { offsets: Int32Array.of(1, 4) }],
  ['offsets that descend', { offsets: Int32Array.of(0, 3, 2, 4) }],
  ['an update of a sequence that is not there', { updates: [Int32Array.of(0, 2)] }],
  ['sets for other tokens', { kept: { ids: Int32Array.of(6), offsets: Int32Array.of(0, 1) } }],
  ['sets that do not end', { kept: { ids: Int32Array.of(6), offsets: Int32Array.of(0, 0, 0, 0, 2) } }],
  ['no offsets', { offsets: new Int32Array(0) }],
])('%s is refused when it is written', (_, change) => {
  expect(() => encodeBatch({ ...sampled(), ...change })).toThrow(
    expect.objectContaining({ boundary: 'store', type: 'invalid-batch' }),
  );
});

test('other tensors are not taken for a batch', () => {
  const format = 'gradus.batch/2';
  expect(() => decodeBatch(writeSafetensors(new Map()))).toThrow(/format/);
  expect(() => decodeBatch(writeSafetensors(new Map(), { format: 'gradus.batch/1' }))).toThrow(/batch\/1/);
  expect(() => decodeBatch(writeSafetensors(new Map(), { format }))).toThrow(/tokens/);
  const { tensors, metadata } = readSafetensors(encodeBatch(sampled()));
  const colour = { shape: [4], data: new Float32Array(4) };
  const more = new Map([...tensors, ['token.colour', colour] as const]);
  expect(() => decodeBatch(writeSafetensors(more, metadata))).toThrow(/token\.colour/);
});
