import { predict } from '../../core/ladder/calibration.ts';
import { lineOfBasis } from '../../core/ladder/learned-tier.ts';
import type { WantedVerdict } from '../../core/ladder/requests.ts';
import { lastCalibrations } from './calibrate.ts';
import { archivePrefix, heardKey } from '../../store/keys.ts';
import { wishes } from '../../store/ladder/ladder-codecs.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';

/**
 * What a run deferred and has heard no verdict of since, best value first. Values are what the tier is expected to say by
 * all that the run has learnt of it since then. A later page supersedes an earlier one.
 */
export async function readArchive(
  store: ObjectStore,
  run: string,
  { verifier, signal }: { verifier?: string | undefined; signal?: AbortSignal } = {},
): Promise<WantedVerdict[]> {
  const deferred = new Map<string, WantedVerdict>();
  const keys = (await store.list(archivePrefix(run), { signal })).map(({ key }) => key);
  for (const key of keys.toSorted()) {
    for (const wish of (await store.find(key, wishes, { signal })) ?? []) {
      const { request } = wish.ask;
      if (verifier !== undefined && request.verifier !== verifier) continue;
      deferred.set(`${request.verifier}/${request.version}/${request.digest}`, wish);
    }
  }
  const calibrations = await lastCalibrations(store, run, signal);
  const open: [string, WantedVerdict][] = [];
  for (const [name, wish] of deferred) {
    const { verifier: asked, version, digest } = wish.ask.request;
    if (await store.head(heardKey(run, asked, version, digest), { signal })) continue;
    const known = wish.basis && calibrations && lineOfBasis(wish.basis, calibrations);
    open.push([name, known ? { ...wish, value: predict(known, wish.basis!.score).mean } : wish]);
  }
  return open.toSorted(([a, x], [b, y]) => y.value - x.value || (a < b ? -1 : 1)).map(([, wish]) => wish);
}
