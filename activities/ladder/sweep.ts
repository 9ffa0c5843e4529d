import { z } from 'zod';
import { hasRoom, emptyAccount, reserve } from '../../core/ladder/budget.ts';
import { ids } from '../../core/names.ts';
import type { PlanSweep, PlannedSweep, Sweep, WantedVerdict } from '../../core/ladder/requests.ts';
import { concurrency, deadlineSeconds, givenName, runName, wholeBudget } from '../../core/fields.ts';
import { didYouMean } from '../../core/did-you-mean.ts';
import { parseStrictly, refusalOfSpec } from '../../core/schema/strict.ts';
import { specOfRun } from '../../store/run/find-run.ts';
import { readArchive } from './archive.ts';
import type { Durable } from '../durable.ts';
import { asksKey } from '../../store/keys.ts';
import { wishes } from '../../store/ladder/ladder-codecs.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';

export type SweepActivities = Durable<ReturnType<typeof createSweep>>;

const sweepSchema = z.strictObject({
  run: runName,
  verifier: givenName.optional(),
  budget: wholeBudget,
  concurrency: concurrency.default(4),
  deadlineSeconds: deadlineSeconds.default(3600),
});

/** Computations of one sweep: their digests pass through its history. */
const MOST_ASKS = 200;

export function createSweep({ store }: { store: ObjectStore }) {
  return {
    /**
     * Reads what a person wrote into a schedule. Throws GradusError('spec', 'invalid') or ('store', 'no-run'), neither
     * retryable: a sweep that never ends would let every later night be skipped.
     */
    async openSweep(written: unknown, signal: AbortSignal): Promise<Sweep> {
      const { verifier, ...sweep } = parseStrictly(sweepSchema, written, 'the sweep');
      const verification = (await specOfRun(store, sweep.run, { signal }))?.verification;
      if (!verification) {
        throw refusalOfSpec('the sweep', [
          { path: ['run'], message: `"${sweep.run}" has no verification ladder, and has deferred nothing` },
        ]);
      }
      const higher = verification.rungs.slice(1).map((tier) => tier.verifier);
      if (verifier === undefined) return sweep;
      if (higher.includes(verifier)) return { ...sweep, verifier };
      throw refusalOfSpec('the sweep', [
        {
          path: ['verifier'],
          message: `no tier of "${sweep.run}" has this verifier${didYouMean(verifier, higher)}`,
        },
      ]);
    },

    /** Takes deferred candidates from the archive, best value first, as far as the sweep's own budget may go. */
    async planSweep(
      { run, verifier, budget, writer }: PlanSweep,
      signal: AbortSignal,
    ): Promise<PlannedSweep> {
      const wanted: WantedVerdict[] = [];
      let account = emptyAccount();
      for (const wish of await readArchive(store, run, { verifier, signal })) {
        const { cost } = wish.ask;
        if (wanted.length >= MOST_ASKS) break;
        // What is too dear does not stand before what is not.
        if (!hasRoom(budget, account, cost)) continue;
        account = reserve(account, cost);
        wanted.push(wish);
      }
      if (wanted.length === 0) return { asks: null, names: [], costs: [] };
      const { ref: asks, value } = await store.putIfAbsent(asksKey(run, writer, 0), wishes, wanted, {
        signal,
      });
      const kept = value.map(({ ask }) => ask);
      return {
        asks,
        names: kept.map(({ request }) => ids.verdict(request)),
        costs: kept.map(({ cost }) => cost),
      };
    },
  };
}
