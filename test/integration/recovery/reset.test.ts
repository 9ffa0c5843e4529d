import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import { DONE } from '../../support/ended.ts';
import { resetToBegin } from '../../support/reset.ts';
import { selfPlaySpec } from '../../support/self-play-spec.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { tinySpecCollecting } from '../../support/tiny-spec.ts';

// `temporal workflow reset` of a run that has ended: all that it keeps is there already, of the same steps.

let installation: TestInstallation;
beforeAll(async () => {
  installation = await startTestInstallation();
}, 120_000);
afterAll(() => installation?.remove());

test.each([
  // What a step takes depends on time there, so it is what was taken the first time.
  ['asynchronous', tinySpecCollecting({ kind: 'asynchronous', maxStaleness: 2 })],
  ['self-play', selfPlaySpec({ baseline: 'moving' })],
])(
  'a run with %s that is done again from its beginning ends with the same checkpoint',
  async (run, spec) => {
    const { runs } = installation;
    const handle = await runs.start(run, spec);
    const first = await handle.result();
    expect(first.end).toEqual(DONE);
    await resetToBegin(handle);
    const again = (await runs.client.workflow.getHandle(run).result()) as CurriculumResult;
    expect(again.checkpoint).toEqual(first.checkpoint);
  },
  300_000,
);
