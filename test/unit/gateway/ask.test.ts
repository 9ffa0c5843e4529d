import { expect, test } from 'vitest';
import { createApp } from '../../../gateway/app.ts';
import { argumentsOf } from '../../../gateway/ask.ts';
import { Problem } from '../../../gateway/problem.ts';

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

test('arguments are JSON, or the text that they are', () => {
  expect(argumentsOf('{"a": [1, null]}')).toEqual({ a: [1, null] });
  expect(argumentsOf('{"a"')).toBe('{"a"');
  expect(JSON.stringify(argumentsOf(nested(400)))).toBe(nested(400));
});

test('arguments that no recursion comes to the end of are the fault of who sent them, not of the worker', () => {
  for (const depth of [1000, 100_000]) {
    expect(() => argumentsOf(nested(depth))).toThrow(Problem);
    expect(() => argumentsOf(nested(depth))).toThrow('more than 500 lists or objects within each other');
  }
});

test('a body that is no JSON object in UTF-8, or that no recursion comes to the end of, is refused and not an error of ours', async () => {
  const app = createApp(new Map(), { keepAliveMs: 1000 });
  const deep = `{"reward": ${nested(3000)}}`;
  const broken = new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]);
  for (const body of ['null', '[1]', '{', deep, broken]) {
    const response = await app.request('/episodes/e/reward', { method: 'POST', body });
    expect(response.status, String(body).slice(0, 20)).toBe(400);
  }
  const response = await app.request('/episodes/e/reward', { method: 'POST', body: '{"reward": 1}' });
  expect(response.status).toBe(404);
});
