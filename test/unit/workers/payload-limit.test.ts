import { defaultPayloadConverter } from '@temporalio/common';
import { expect, test } from 'vitest';
import { PayloadLimit } from '../../../workers/payload-limit.ts';

const payload = (characters: number) => defaultPayloadConverter.toPayload('x'.repeat(characters));
// A string in JSON has two quotes.
const codec = new PayloadLimit(1026);

test('a payload up to the limit passes unchanged, both ways', async () => {
  const payloads = [payload(1024), payload(0), {}];
  expect(await codec.encode(payloads)).toEqual(payloads);
  expect(await codec.decode([payload(1_000_000)])).toHaveLength(1);
});

test('one payload above the limit is refused, whatever the others are, and says what to do', async () => {
  await expect(codec.encode([payload(1), payload(1025), payload(1)])).rejects.toMatchObject({
    boundary: 'infra',
    type: 'payload-too-large',
    retryable: false,
    message: expect.stringMatching(/1027 bytes.*1026.*object store/u) as string,
  });
});
