import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { answerOf } from '../../../../activities/rollout/served/connection.ts';
import {
  eitherWire,
  messages,
  passRequest,
  readPass,
  readSample,
} from '../../../../activities/training/tinker/protobuf.ts';
import { z } from 'zod';

// Messages of Tinker's own client are read and written as it does; test/golden/tinker/write.py makes the files with it.

const golden = (name: string): Promise<Buffer> =>
  readFile(path.join(import.meta.dirname, '../../../golden/tinker', `${name}.bin`));

const tensor = (dtype: 'int64' | 'float32', data: number[]) => ({ data, dtype, shape: [data.length] });
const datum = (tokens: number[], targets: number[], logprobs: number[], advantages: number[]) => ({
  model_input: { chunks: [{ type: 'encoded_text' as const, tokens }] },
  loss_fn_inputs: {
    target_tokens: tensor('int64', targets),
    logprobs: tensor('float32', logprobs),
    advantages: tensor('float32', advantages),
  },
});

test('a pass is asked for as Tinker’s own client asks', async () => {
  const bytes = passRequest(
    { model_id: 'model-1', seq_id: 7, forward_only: false },
    {
      data: [
        datum([5, 151_000, 3], [151_000, 3, 2], [-0.25, -1.5, -3.125], [0, 1.5, -0.75]),
        datum([9], [2], [-0.1], [0.3]),
      ],
      loss_fn: 'ppo',
      loss_fn_config: { clip_low_threshold: 0.8, clip_high_threshold: 1.28 },
    },
  );
  const read = (from: Uint8Array) => messages.request.toObject(messages.request.decode(from));
  const theirs = await golden('pass-request');
  expect(read(bytes)).toEqual(read(theirs));
  // A field that neither knows would be left out of both: the order of entries of maps is all that may differ.
  expect(bytes).toHaveLength(theirs.length);
});

test('log-probs of a pass are read: of records in a row, in both types, and of what is not finite none', async () => {
  const outputs = [[-0.25, -1.5, null], [Math.fround(-0.1)], [-2.5, -0.0078125]];
  expect(readPass(await golden('pass-answer'))).toEqual({
    loss_fn_outputs: outputs.map((data) => ({ logprobs: { data } })),
  });
});

test('samples are read, with why they end and the log-probs of their prompt', async () => {
  expect(readSample(await golden('sample-answer'))).toEqual({
    sequences: [
      { tokens: [41, 151_000, 2], logprobs: [-0.5, -0.125, -2], stop_reason: 'stop' },
      { tokens: [3], logprobs: [-1], stop_reason: 'length' },
    ],
    prompt_logprobs: [null, -4],
  });
});

/** An answer with log-probs of three float32, by these offsets in bytes. */
const cutAt = (offsets: bigint[], more: object = {}) => {
  const logprobs = {
    data: Buffer.alloc(12),
    offsets: Buffer.from(BigInt64Array.from(offsets).buffer),
    dtype: 1,
    ...more,
  };
  return messages.pass.encode({ loss_fn_outputs: [{ fields: { logprobs } }] }).finish();
};

test.each([
  ['text', Buffer.from('<html>')],
  ['half of one', Buffer.from([0x12, 0x7f, 1])],
  ['half an offset', cutAt([], { offsets: Buffer.alloc(3) })],
  ['offsets that end before the data', cutAt([0n, 8n])],
  ['offsets that end behind it', cutAt([0n, 16n])],
  ['offsets that begin within it', cutAt([4n, 12n])],
  ['offsets that go back, each of which copies all', cutAt([0n, 12n, 0n, 12n])],
  ['offsets below 0', cutAt([0n, -4n, 12n])],
  ['offsets within a number', cutAt([0n, 6n, 12n])],
  ['log-probs of integers', cutAt([0n, 12n], { dtype: 2 })],
])('%s in place of an answer is an answer that is none', (_, bytes) => {
  const schema = eitherWire(z.object({ loss_fn_outputs: z.array(z.unknown()) }), readPass);
  expect(() => answerOf(schema, new Uint8Array(bytes), 'server')).toThrow(
    expect.objectContaining({ type: 'server-answer', retryable: true }) as Error,
  );
});
