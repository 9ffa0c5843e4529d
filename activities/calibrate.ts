import { addPairs } from '../core/ladder/calibration.ts';
import type { Calibration, ScorePair } from '../core/ladder/calibration.ts';
import type { Climbing, LedgerPlace } from '../core/ladder/requests.ts';
import type { Climber } from './climbers.ts';
import { calibrationKey, calibrationPrefix, pairKey } from './store/keys.ts';
import type { ObjectStore } from './store/object-store.ts';

/**
 * Adds the pairs of scores of a rung and the one below it that a run has not counted yet: those of the step that climbs
 * now, wherever its verdicts are from, and those of earlier steps whose verdicts have come. A subject counts once in a
 * run, however often the policy proposes it.
 */
export async function calibrate(
  store: ObjectStore,
  { run, verification: { rungs }, calibrations, steps, came, ledger }: Climbing,
  rung: number,
  climbers: readonly Climber[],
  signal: AbortSignal,
): Promise<Calibration[]> {
  const below = rung - 1;
  const present = steps.at(-1);
  const arrived = new Set(came[rung]);
  const bySubject = new Map<string, Map<string, ScorePair>>();
  for (const { step, scores, digests, group, episode } of climbers) {
    const [cheap, dear] = [scores[below], scores[rung]];
    const digest = digests[rung];
    if (typeof cheap !== 'number' || typeof dear !== 'number' || !digest) continue;
    if (step !== present && !arrived.has(digest)) continue;
    const pairs = bySubject.get(digest) ?? new Map<string, ScorePair>();
    bySubject.set(digest, pairs);
    // Several episodes with the same answer to the same task are one pair.
    pairs.set(`${JSON.stringify(group.tasks[episode.task]!.ref)} ${cheap}`, {
      cheap,
      dear,
      cheapPassed: cheap >= rungs[below]!.passAtLeast,
      dearPassed: dear >= rungs[rung]!.passAtLeast,
    });
  }
  const claimed = await Promise.all(
    [...bySubject].map(async ([digest, pairs]) => {
      const key = pairKey(run, rungs[rung]!.verifier, digest);
      return (await claim(store, key, ledger, signal)) ? [...pairs.values()] : [];
    }),
  );
  const fresh = claimed.flat();
  if (fresh.length === 0) return calibrations;
  const after = calibrations.with(below, addPairs(calibrations[below]!, fresh));
  // For sweeps, which have no ladder to ask.
  await store.putJson(calibrationKey(run, ledger.writer, ledger.sequence), after, { signal });
  return after;
}

/** The newest that a run has kept; null where it has seen no pair. */
export async function lastCalibrations(
  store: ObjectStore,
  run: string,
  signal?: AbortSignal,
): Promise<Calibration[] | null> {
  const keys = await store.list(calibrationPrefix(run), { signal });
  const newest = keys.map(({ key }) => key).toSorted();
  const ref = newest.length === 0 ? undefined : await store.head(newest.at(-1)!, { signal });
  return ref ? ((await store.getJson(ref, { signal })) as unknown as Calibration[]) : null;
}

/** Whether the pairs of a subject belong to this request; another attempt at the same request gets the same answer. */
async function claim(
  store: ObjectStore,
  key: string,
  { writer, sequence }: LedgerPlace,
  signal: AbortSignal,
): Promise<boolean> {
  const ref = await store.putJson(key, { writer, sequence }, { signal });
  const first = (await store.getJson(ref, { signal })) as unknown as LedgerPlace;
  return first.writer === writer && first.sequence === sequence;
}
