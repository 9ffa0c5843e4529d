import { CancelledFailure, TerminatedFailure, WorkflowFailedError } from '@temporalio/client';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { addEntries } from '../../../core/ladder/ledger.ts';
import { ids } from '../../../core/names.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { ladderSpec, startLadderInstallation } from '../../support/ladder-installation.ts';
import type { LadderInstallation } from '../../support/ladder-installation.ts';
import { until } from '../../support/run-client.ts';
import { DONE } from '../../support/ended.ts';

let installation: LadderInstallation;
beforeAll(async () => {
  installation = await startLadderInstallation();
}, 600_000);
afterEach(() => installation.releaseAll());
afterAll(() => installation?.remove());

const causeOf = (result: Promise<unknown>): Promise<unknown> =>
  result.then(
    () => 'it completed',
    (error: unknown) => (error as WorkflowFailedError).cause,
  );

test('a run that failed says so, and why', async () => {
  const { runs } = installation;
  const run = await runs.start('failing', { ...briefSpec(), budgt: 1 });
  await expect(run.result()).rejects.toThrow(WorkflowFailedError);
  const { status, failure } = await runs.progress(run, () => true);
  expect(status).toBe('failed');
  expect(failure).toContain('budgt: unknown field');
});

test('a ladder ends with its run, cancelled or terminated, and the verdicts that another run waits for come all the same', async () => {
  const { runs, hold, status, ledger, ladderEnd } = installation;
  const release = await hold('near');
  const near = { verifier: 'near', passAtLeast: 0.5, concurrency: 1 };
  const spec = ladderSpec([near], { maxSteps: 1, seed: 90 });
  const names = ['cancelled', 'terminated', 'stays'];
  const [cancelled, terminated, stays] = await Promise.all(names.map((name) => runs.start(name, spec)));
  for (const name of names) {
    await until(
      // One is asked, and what else is wanted is queued behind it.
      async () => ((await status(name))?.waiting ?? 0) > 1 || undefined,
      300_000,
      () => `${name} waits for no verdict`,
    );
  }
  await cancelled!.cancel();
  await terminated!.terminate('the test says so');
  expect(await causeOf(cancelled!.result())).toBeInstanceOf(CancelledFailure);
  expect(await causeOf(terminated!.result())).toBeInstanceOf(TerminatedFailure);
  expect((await runs.progress(cancelled!, () => true)).status).toBe('cancelled');

  for (const name of ['cancelled', 'terminated']) {
    const left = await ladderEnd(name);
    expect(left.waiting).toBeGreaterThan(0);
    const { deferred, computed } = addEntries({}, await ledger(name))['near']!;
    expect({ deferred, computed }).toEqual({ deferred: left.waiting - 1, computed: 0 });
    expect((await installation.store.list(`runs/${name}/archive/`)).length).toBeGreaterThan(0);
  }
  const ladder = await runs.client.workflow.getHandle(ids.ladder('stays')).describe();
  expect(ladder.status.name).toBe('RUNNING');
  await release();
  expect(await stays!.result()).toMatchObject({ end: DONE });
  const { computed, shared } = (await ladderEnd('stays')).totals['near']!;
  expect(computed + shared).toBeGreaterThan(1);
});
