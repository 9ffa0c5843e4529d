import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkEnvironments } from 'gradus/check';
import { dial } from './environment.ts';

test('a wrong digit makes the safe spring back', () => {
  const one = dial({ code: '314', right: 0 }, 3);
  assert.deepEqual(one, { code: '314', right: 1 });
  assert.deepEqual(dial(one, 4), { code: '314', right: 0 });
});

test('the environment does what training relies on', async () => {
  const { findings } = await checkEnvironments(['environment.ts']);
  assert.deepEqual(findings, []);
});
