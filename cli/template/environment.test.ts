import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkEnvironments } from 'gradus/check';
import { backwards } from './environment.ts';

test('words are spelled backwards', () => {
  assert.equal(backwards('lemon'), 'nomel');
});

test('the environment does what training relies on', async () => {
  const { findings } = await checkEnvironments(['environment.ts']);
  assert.deepEqual(findings, []);
});
