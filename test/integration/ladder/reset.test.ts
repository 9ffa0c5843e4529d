import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LedgerEntry } from '../../../core/ladder/ledger.ts';
import type { curriculum } from '../../../workflows/curriculum/curriculum.ts';
import { DONE } from '../../support/ended.ts';
import { ladderSpec, startLadderInstallation } from '../../support/ladder-installation.ts';
import type { LadderInstallation, TierOptions } from '../../support/ladder-installation.ts';
import { resetToBegin } from '../../support/reset.ts';

// A run that is done again after its ladder has ended has another ladder, which writes into the same folders.

let installation: LadderInstallation;
beforeAll(async () => {
  installation = await startLadderInstallation();
}, 600_000);
afterAll(() => installation?.remove());

/** A run to the end of its ladder, and the same once more from its beginning. `meanwhile` is done when the first has ended. */
async function twice(
  run: string,
  tiers: TierOptions[],
  { seed = 5, offer = 0, meanwhile }: { seed?: number; offer?: number; meanwhile?: () => Promise<void> } = {},
) {
  const { runs, ladderEnd, computed, ledger } = installation;
  const look = async () => ({ totals: (await ladderEnd(run)).totals, entries: await ledger(run) });
  const handle = await runs.start(run, ladderSpec(tiers, { seed, maxSteps: 4, offer }));
  const first = await handle.result();
  expect(first.end).toEqual(DONE);
  await meanwhile?.();
  const [once, asked] = [await look(), await computed('near')];
  await resetToBegin(handle);
  const second = await runs.client.workflow.getHandle<typeof curriculum>(run).result();
  const again = await look();
  // What is known is not computed again, and what was decided is decided as it was.
  expect(await computed('near')).toEqual(asked);
  expect(second.checkpoint).toEqual(first.checkpoint);
  return { once, again };
}

test('a run that is done again ends as it did, by the decisions of its first ladder', async () => {
  const near = { verifier: 'near', passAtLeast: 0.5 };
  const { once, again } = await twice('waits', [near, { verifier: 'exact', passAtLeast: 0.5 }]);
  const decisions = (entries: LedgerEntry[]) => entries.filter(({ kind }) => kind === 'decision');
  expect(decisions(again.entries)).toEqual(decisions(once.entries));
  expect(again.totals['near']!.rejected).toBe(once.totals['near']!.rejected);
}, 600_000);

test('what came after the steps the first time, and between them the second, is not taken for their decisions', async () => {
  const letGo = await installation.hold('near');
  const near = { verifier: 'near', passAtLeast: 0.5, wait: false };
  // Of other tasks than the run before: a verdict that is known already is not late.
  const { once, again } = await twice('late', [near], { seed: 6, offer: 8, meanwhile: letGo });
  const heard = (entries: LedgerEntry[]) => entries.filter(({ kind }) => kind === 'verdict');
  expect(once.totals['near']!.afterRun).toBeGreaterThan(0);
  // All that was written the first time is there, and the second ladder has heard each verdict, too.
  expect(again.entries.slice(0, once.entries.length)).toEqual(once.entries);
  expect(heard(again.entries)).toHaveLength(2 * heard(once.entries).length);
  expect(again.totals['near']).toMatchObject({ computed: 0, shared: heard(once.entries).length });
}, 600_000);

test('a run that is reset while its ladder goes on is answered as before, and takes no budget and no place twice', async () => {
  const { runs, hold, status, ladderEnd } = installation;
  const letGo = await hold('near');
  const near = { verifier: 'near', passAtLeast: 0.5, wait: false, concurrency: 2, budget: { count: 6 } };
  const handle = await runs.start('alive', ladderSpec([near], { seed: 7, maxSteps: 3 }));
  const first = await handle.result();
  const once = await status('alive');
  // Both places are taken, and others wait for them.
  expect(once!.waiting).toBeGreaterThan(2);
  await resetToBegin(handle);
  const second = await runs.client.workflow.getHandle<typeof curriculum>('alive').result();
  expect(second.checkpoint).toEqual(first.checkpoint);
  expect(await status('alive')).toEqual(once);
  await letGo();
  const { budgets, totals, waiting } = await ladderEnd('alive');
  expect(waiting).toBe(0);
  expect(budgets['near']!.account).toMatchObject({ count: once!.waiting, reserved: { count: 0 } });
  expect(totals['near']!.computed).toBe(once!.waiting);
}, 600_000);
