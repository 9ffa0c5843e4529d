import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { addEntries } from '../../../core/ladder/ledger.ts';
import type { LedgerEntry } from '../../../core/ladder/ledger.ts';
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

const NEAR = { verifier: 'near', passAtLeast: 0.3 };
const EXACT = { verifier: 'exact', passAtLeast: 0.9 };

const verdictsIn = (entries: readonly LedgerEntry[]) => entries.filter((entry) => entry.kind === 'verdict');

test('candidates are escalated, the ledger adds up to what the verifiers counted, and nothing is computed twice', async () => {
  const { runs, computed, ladderEnd, ledger } = installation;
  const spec = ladderSpec([NEAR, EXACT], { passAtLeast: 0.5 });
  const result = await (await runs.start('climbs', spec)).result();
  expect(result.end).toEqual(DONE);
  const final = await ladderEnd('climbs');
  expect(final.waiting).toBe(0);

  const near = await computed('near');
  const exact = await computed('exact');
  expect(near.length).toBeGreaterThan(0);
  expect(final.totals['near']!.computed).toBe(near.length);
  expect(final.totals['exact']?.computed ?? 0).toBe(exact.length);
  expect(new Set(near.map(({ subject }) => JSON.stringify(subject))).size).toBe(near.length);
  const close = Object.entries(final.totals).map(([name, totals]) => [
    name,
    {
      ...totals,
      seconds: expect.closeTo(totals.seconds, 9) as number,
      usd: expect.closeTo(totals.usd, 9) as number,
    },
  ]);
  expect(addEntries({}, await ledger('climbs'))).toEqual(Object.fromEntries(close));
  expect(final.calibration['is-number → near']!.n).toBe(near.length);

  // The same run again: everything is known, so nothing is computed or charged, and as much is learnt of the tiers.
  const again = await (await runs.start('climbs-again', spec)).result();
  expect(again.checkpoint.weights).toBe(result.checkpoint.weights);
  expect(await computed('near')).toHaveLength(near.length);
  expect(await computed('exact')).toHaveLength(exact.length);
  expect((await ladderEnd('climbs-again')).calibration).toEqual(final.calibration);
});

test('two runs that want the same verdicts at once share each computation, and one of them is charged', async () => {
  const { runs, computed, ladderEnd, ledger, hold, status } = installation;
  // An attempt that a busy machine lost is made again: what counts is what was computed, not how often it was begun.
  const subjects = async () =>
    new Set((await computed('near')).map(({ subject }) => JSON.stringify(subject)));
  const before = (await subjects()).size;
  const spec = ladderSpec([{ ...NEAR, passAtLeast: 0 }], { seed: 80, maxSteps: 1 });
  const release = await hold('near');
  const both = await Promise.all(['twin-a', 'twin-b'].map((name) => runs.start(name, spec)));
  // What the runs of the test before have had computed is answered at once; all else is held.
  await until(
    async () => {
      const [a, b] = await Promise.all([status('twin-a'), status('twin-b')]);
      return (a && b && a.waiting > 0 && a.waiting === b.waiting) || undefined;
    },
    300_000,
    () => 'the two runs do not wait for the same verdicts',
  );
  await release();
  const [one, other] = await Promise.all(both.map((run) => run.result()));
  expect(one!.checkpoint.weights).toBe(other!.checkpoint.weights);
  const [a, b] = (await Promise.all([ladderEnd('twin-a'), ladderEnd('twin-b')])).map(
    ({ totals }) => totals['near']!,
  );
  const made = (await subjects()).size - before;
  expect(made).toBeGreaterThan(0);
  expect(a!.computed + b!.computed).toBe(made);
  expect(a!.computed + a!.shared).toBe(b!.computed + b!.shared);
  const entries = verdictsIn([...(await ledger('twin-a')), ...(await ledger('twin-b'))]);
  const charged = entries.flatMap(({ digest, spent }) => (spent === null ? [] : [digest]));
  expect(charged).toHaveLength(made);
  expect(new Set(charged).size).toBe(made);
});
