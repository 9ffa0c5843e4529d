import { beforeAll, expect, test } from 'vitest';
import { createReverify } from '../../../activities/ladder/reverify.ts';
import { createSweep } from '../../../activities/ladder/sweep.ts';
import { runKey } from '../../../store/keys.ts';
import { runClaims } from '../../../store/run/run-claim.ts';
import { putTrajectories } from '../../../store/rollout/trajectories.ts';
import type { CurriculumSpec } from '../../../core/schema/curriculum-spec.ts';
import { openTestStore } from '../../support/test-store.ts';

// What a person writes into a schedule, and into `gradus reverify`.

const { store } = await openTestStore();
beforeAll(async () => {
  const claim = async (run: string, verification: object): Promise<void> => {
    const spec = { run, ...verification } as CurriculumSpec;
    await store.putIfAbsent(runKey(run), runClaims, { execution: 'x', spec });
  };
  const tiers = ['molecule', 'xtb', 'dft'].map((verifier) => ({ verifier }));
  await claim('my-run', { verification: { rungs: tiers } });
  await claim('fast-only', {});
  await putTrajectories(
    store,
    { run: 'my-run', stage: 'after', step: 0 },
    { id: 'group-0000', weights: 'x', temperature: 1, tasks: [], episodes: [] },
  );
});

const { signal } = new AbortController();
const swept = (written: unknown) => createSweep({ store }).openSweep(written, signal);
const reverified = (written: unknown) =>
  createReverify({ store, environments: new Map() }).openReverify(written, signal);
const budget = { seconds: 3600 };

test('a sweep is read with what was left out', async () => {
  expect(await swept({ run: 'my-run', budget })).toEqual({
    run: 'my-run',
    budget,
    concurrency: 4,
    deadlineSeconds: 3600,
  });
  expect(await swept({ run: 'my-run', verifier: 'dft', budget: { count: 0 }, concurrency: 1 })).toMatchObject(
    {
      verifier: 'dft',
      budget: { count: 0 },
      concurrency: 1,
    },
  );
});

test.each([
  ['a misspelt field', { run: 'my-run', budgt: budget }, 'budgt: unknown field; did you mean "budget"?'],
  [
    'an unknown limit',
    { run: 'my-run', budget: { minutes: 1 } },
    'budget.minutes: unknown field; valid: count',
  ],
  ['no budget', { run: 'my-run' }, 'budget: is missing: expected object'],
  [
    'a budget without a limit',
    { run: 'my-run', budget: {} },
    'budget: names no limit: give count, seconds or usd',
  ],
  ['a limit below zero', { run: 'my-run', budget: { usd: -1 } }, 'budget.usd: must be at least 0, not -1'],
  [
    'what holds for steps',
    { run: 'my-run', budget: { count: 1, perStep: 1 } },
    'budget.perStep: unknown field',
  ],
  [
    'a run that is none',
    { run: 'my-ran', budget },
    'there is no run "my-ran" in this store; did you mean "my-run"?',
  ],
  ['a run without a ladder', { run: 'fast-only', budget }, 'run: "fast-only" has no verification ladder'],
  [
    'a verifier of no tier',
    { run: 'my-run', verifier: 'dfft', budget },
    'verifier: no tier of "my-run" has this verifier; did you mean "dft"?',
  ],
  ['a name that is no part of a key', { run: '../x', budget }, 'run: use letters, digits'],
  [
    'a deadline of years',
    { run: 'my-run', budget, deadlineSeconds: 1e300 },
    'deadlineSeconds: must be at most 2592000',
  ],
  ['nothing', undefined, '(the sweep): is missing: expected object'],
])('a sweep with %s is refused for good', async (_, written, message) => {
  const refused = swept(written);
  await expect(refused).rejects.toThrow(message);
  await expect(refused).rejects.toMatchObject({ name: 'GradusError', retryable: false });
});

test.each([
  ['a misspelt field', { run: 'my-run', verifier: 'dft', version: '1', stag: 'rl' }, 'did you mean "stage"?'],
  ['no verifier', { run: 'my-run', version: '1' }, 'verifier: is missing: expected string'],
  ['a run that is none', { run: 'mine', verifier: 'dft', version: '1' }, 'there is no run "mine"'],
  [
    'a stage that is none',
    { run: 'my-run', verifier: 'dft', version: '1', stage: 'afer' },
    'no episodes of a stage "afer" of my-run are kept; did you mean "after"?',
  ],
  [
    'a stage of a run that has kept nothing',
    { run: 'fast-only', verifier: 'dft', version: '1', stage: 'rl' },
    'no episodes of a stage "rl" of fast-only are kept, and of no other: none of its steps has rolled out yet',
  ],
])('a re-verification with %s is refused for good', async (_, written, message) => {
  const refused = reverified(written);
  await expect(refused).rejects.toThrow(message);
  await expect(refused).rejects.toMatchObject({ name: 'GradusError', retryable: false });
});
