import { hasRoom, emptyAccount, reserve } from '../core/ladder/budget.ts';
import type { Ask, PlanSweep, PlannedSweep } from '../core/ladder/requests.ts';
import type { Durable } from './durable.ts';
import { archivePrefix, asksKey } from './store/keys.ts';
import type { ObjectStore } from './store/object-store.ts';
import { findVerdict } from './verdict-cache.ts';

export type SweepActivities = Durable<ReturnType<typeof createSweep>>;

/** Computations of one sweep: their digests pass through its history. */
const MOST_ASKS = 200;

export function createSweep({ store }: { store: ObjectStore }) {
  return {
    /** Takes deferred candidates from the archive, best value first, as far as the sweep's own budget goes. */
    async planSweep(
      { run, verifier, budget, writer }: PlanSweep,
      signal: AbortSignal,
    ): Promise<PlannedSweep> {
      const deferred = new Map<string, { ask: Ask; value: number }>();
      for (const { key } of await store.list(archivePrefix(run), { signal })) {
        const ref = await store.head(key, { signal });
        if (!ref) continue;
        const page = (await store.getJson(ref, { signal })) as unknown as { ask: Ask; value: number }[];
        for (const one of page) {
          const { request } = one.ask;
          if (verifier !== undefined && request.verifier !== verifier) continue;
          const name = `${request.verifier}/${request.version}/${request.digest}`;
          if (one.value > (deferred.get(name)?.value ?? -Infinity)) deferred.set(name, one);
        }
      }
      const ordered = [...deferred].toSorted(([a, x], [b, y]) => y.value - x.value || (a < b ? -1 : 1));
      const asks: Ask[] = [];
      let account = emptyAccount();
      for (const [, { ask }] of ordered) {
        if (asks.length >= MOST_ASKS || !hasRoom(budget, account, ask.cost)) break;
        if ((await findVerdict(store, ask.request, signal)) !== null) continue;
        account = reserve(account, ask.cost);
        asks.push(ask);
      }
      const ref = asks.length === 0 ? null : await store.putJson(asksKey(run, writer, 0), asks, { signal });
      const kept = ref ? ((await store.getJson(ref, { signal })) as unknown as Ask[]) : [];
      return { asks: ref, digests: kept.map(({ request }) => request.digest) };
    },
  };
}
