import { groupBy } from '../../core/group-by.ts';
import { addPairs } from '../../core/ladder/calibration.ts';
import type { Calibration, ScorePair } from '../../core/ladder/calibration.ts';
import { lineBelow } from '../../core/ladder/learned-tier.ts';
import type { LadderRequest, LedgerPlace } from '../../core/ladder/requests.ts';
import type { LadderCandidate } from './candidates.ts';
import { calibrationKey, calibrationPrefix, pairKey } from '../../store/keys.ts';
import { calibrationLists, pairClaims } from '../../store/ladder/ladder-codecs.ts';
import type { Counted } from '../../store/ladder/ladder-codecs.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';

/**
 * Adds the pairs of scores of a tier and the one below it that a run has not counted yet: those of the step that is escalated
 * now, wherever its verdicts are from, and those of earlier steps whose verdicts have come. A subject counts once in a
 * run, however often the policy proposes it. So what a reward model may have learnt from is no evidence of how good it is,
 * and no pair of its line is a subject of the run that it has learnt from.
 */
export async function calibrate(
  store: ObjectStore,
  { run, verification: { rungs: tiers, learned: model }, calibrations, steps, came }: LadderRequest,
  tier: number,
  candidates: readonly LadderCandidate[],
  signal: AbortSignal,
): Promise<Counted> {
  const below = tier - 1;
  const present = steps.at(-1);
  const arrived = new Set(came[tier]);
  const bySubject = new Map<string, Map<string, LinePair>>();
  for (const { step, scores, digests, learned, group, episode } of candidates) {
    const [cheap, dear] = [scores[below], scores[tier]];
    const digest = digests[tier];
    if (typeof cheap !== 'number' || typeof dear !== 'number' || !digest) continue;
    if (step !== present && !arrived.has(digest)) continue;
    const pairs = bySubject.get(digest) ?? new Map<string, LinePair>();
    bySubject.set(digest, pairs);
    // Several episodes with the same answer to the same task are one pair.
    pairs.set(`${JSON.stringify(group.tasks[episode.task]!.ref)} ${cheap}`, {
      cheap,
      dear,
      cheapPassed: (below === 0 ? learned?.passed : undefined) ?? cheap >= tiers[below]!.passAtLeast,
      dearPassed: dear >= tiers[tier]!.passAtLeast,
      line: lineBelow(tier, learned, tiers.length),
    });
  }
  const isClaimed = async (by: string, digest: string): Promise<boolean> =>
    (await store.head(pairKey(by, tiers[tier]!.verifier, digest), { signal })) !== undefined;
  const unclaimed = await Promise.all(
    [...bySubject].map(async ([digest, pairs]) => {
      if (await isClaimed(run, digest)) return [];
      const ofModel = [...pairs].filter(([, { line }]) => line === tiers.length - 1);
      if (model?.learntFrom && ofModel.length > 0 && (await isClaimed(model.learntFrom, digest)))
        ofModel.forEach(([name]) => pairs.delete(name));
      return pairs.size > 0 ? [digest] : [];
    }),
  );
  const counted = unclaimed.flat();
  if (counted.length === 0) return { calibrations, counted };
  const fresh = groupBy(
    counted.flatMap((digest) => [...bySubject.get(digest)!.values()]),
    ({ line }) => line,
  );
  return {
    calibrations: calibrations.map((known, line) => addPairs(known, fresh.get(line) ?? [])),
    counted,
  };
}

/** A pair, and the line that it belongs to. */
interface LinePair extends ScorePair {
  line: number;
}

/** Claims the pairs that a request has counted, for all that come later. */
export async function putCalibrations(
  store: ObjectStore,
  { run, verification: { rungs: tiers } }: LadderRequest,
  ledger: LedgerPlace,
  tier: number,
  { calibrations, counted }: Counted,
  signal: AbortSignal,
): Promise<void> {
  if (counted.length === 0) return;
  const claim = (digest: string) =>
    store.putIfAbsent(pairKey(run, tiers[tier]!.verifier, digest), pairClaims, ledger, { signal });
  await Promise.all(counted.map(claim));
  // For sweeps, which have no ladder to ask.
  const key = calibrationKey(run, ledger.writer, ledger.sequence);
  await store.putIfAbsent(key, calibrationLists, calibrations, { signal });
}

/** The newest that a run has kept; null where it has seen no pair. */
export async function lastCalibrations(
  store: ObjectStore,
  run: string,
  signal?: AbortSignal,
): Promise<Calibration[] | null> {
  const keys = await store.list(calibrationPrefix(run), { signal });
  const newest = keys.map(({ key }) => key).toSorted();
  return newest.length === 0 ? null : store.find(newest.at(-1)!, calibrationLists, { signal });
}
