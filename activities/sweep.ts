import { hasRoom, emptyAccount, reserve } from '../core/ladder/budget.ts';
import type { PlanSweep, PlannedSweep, Wish } from '../core/ladder/requests.ts';
import { readArchive } from './archive.ts';
import type { Durable } from './durable.ts';
import { asksKey } from './store/keys.ts';
import type { ObjectStore } from './store/object-store.ts';

export type SweepActivities = Durable<ReturnType<typeof createSweep>>;

/** Computations of one sweep: their digests pass through its history. */
const MOST_ASKS = 200;

export function createSweep({ store }: { store: ObjectStore }) {
  return {
    /** Takes deferred candidates from the archive, best value first, as far as the sweep's own budget may go. */
    async planSweep(
      { run, verifier, budget, writer }: PlanSweep,
      signal: AbortSignal,
    ): Promise<PlannedSweep> {
      const wishes: Wish[] = [];
      let account = emptyAccount();
      for (const wish of await readArchive(store, run, { verifier, signal })) {
        const { cost } = wish.ask;
        if (wishes.length >= MOST_ASKS || !hasRoom(budget, account, cost)) break;
        account = reserve(account, cost);
        wishes.push(wish);
      }
      if (wishes.length === 0) return { asks: null, digests: [], costs: [] };
      const asks = await store.putJson(asksKey(run, writer, 0), wishes, { signal });
      const kept = ((await store.getJson(asks, { signal })) as unknown as Wish[]).map(({ ask }) => ask);
      return {
        asks,
        digests: kept.map(({ request }) => request.digest),
        costs: kept.map(({ cost }) => cost),
      };
    },
  };
}
