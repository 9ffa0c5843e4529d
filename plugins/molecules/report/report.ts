import { addPairs, noCalibration, predict } from '../../../core/ladder/calibration.ts';
import type { ScorePair } from '../../../core/ladder/calibration.ts';
import { addEntries, noTotals } from '../../../core/ladder/ledger.ts';
import type { LedgerEntry } from '../../../core/ladder/ledger.ts';
import type { Tier } from '../../../core/episode/outcome.ts';
import { promptOf } from '../../../environments/families/molecules/targets.ts';
import { bestOf } from './best.ts';
import type { BestMolecule } from './best.ts';
import type { Design } from './designs.ts';
import { compareQuality, shareOf } from './quality.ts';
import type { QualityComparison, Share } from './quality.ts';

/** A tier of the ladder that the run had, the cheapest first. */
export interface ReportTier {
  verifier: string;
  tier: Tier;
  passAtLeast: number;
}

/** What the report is made of: all of it is in the store. */
export interface RunRecord {
  rungs: readonly ReportTier[];
  /** The verifier that the report's tasks were judged by; null where there was none. */
  judge: string | null;
  training: readonly Design[];
  before: readonly Design[];
  after: readonly Design[];
  ledger: readonly LedgerEntry[];
  confidence: number;
}

/** What reached a tier, and what became of it there. */
export interface TierFunnel extends ReportTier {
  /** Episodes whose answer this tier was asked about. */
  candidates: number;
  /** Different molecules among them. */
  different: number;
  passed: number;
  abstained: number;
  /** Episodes that would have come here, had there been a budget. */
  deferred: number;
  /** Asked, and not answered when the run was over. */
  waiting: number;
  /** Calculations that this run has caused; null for the fast tier, whose verdicts no ledger books. */
  computed: number | null;
  seconds: number | null;
  usd: number | null;
}

export interface CalibrationReport {
  from: string;
  to: string;
  /** One for each molecule and target that both have judged. */
  pairs: ScorePair[];
  /** What the higher tier is expected to say: intercept + slope × what the cheaper one said; null where that is all one. */
  line: { intercept: number; slope: number } | null;
  /** Root mean square of what the pairs are off that line. */
  residual: number | null;
  /** How often the higher tier passed what the cheaper one had passed. */
  passesHold: Share;
}

export interface MoleculesReport {
  funnel: TierFunnel[];
  calibration: CalibrationReport[];
  best: BestMolecule[];
  quality: QualityComparison;
}

/** How many molecules are shown. */
const BEST = 8;

export function makeReport(record: RunRecord): MoleculesReport {
  const { rungs: tiers, judge, training, before, after, ledger, confidence } = record;
  const asked = askedOf(ledger);
  const reached = tiers.map((_, tier) => training.filter((design) => hasReached(design, tier)));
  const totals = addEntries({}, ledger);
  return {
    funnel: tiers.map((tier, i) => funnelOf(tier, i, reached[i]!)),
    calibration: tiers
      .slice(1)
      .map((_, i) => calibrationOf(tiers[i]!, tiers[i + 1]!, reached[i + 1]!, confidence)),
    best: judge === null ? [] : bestOf([...training, ...after], judge, BEST),
    quality: compareQuality(before, after, judge, confidence),
  };

  /** It was asked about, or a verdict that was known already stood for it. */
  function hasReached({ id, basis }: Design, tier: number): boolean {
    if (tier === 0 || asked.escalated.get(tiers[tier]!.verifier)?.has(id)) return true;
    return tiers.findIndex(({ verifier }) => verifier === basis) >= tier;
  }

  function funnelOf(tier: ReportTier, at: number, here: readonly Design[]): TierFunnel {
    const verdicts = here.map(({ verdicts }) => verdicts[tier.verifier]);
    const ids = new Set(here.map(({ id }) => id));
    const deferred = [...(asked.deferred.get(tier.verifier) ?? [])].filter((id) => !ids.has(id));
    const { computed, seconds, usd } = totals[tier.verifier] ?? noTotals();
    return {
      verifier: tier.verifier,
      tier: tier.tier,
      passAtLeast: tier.passAtLeast,
      candidates: here.length,
      different: new Set(here.flatMap(({ smiles }) => smiles ?? [])).size,
      passed: verdicts.filter((verdict) => (verdict?.score ?? -1) >= tier.passAtLeast).length,
      abstained: verdicts.filter((verdict) => verdict?.score === null).length,
      deferred: deferred.length,
      waiting: verdicts.filter((verdict) => verdict === undefined).length,
      ...(at === 0 ? { computed: null, seconds: null, usd: null } : { computed, seconds, usd }),
    };
  }
}

function askedOf(ledger: readonly LedgerEntry[]) {
  const escalated = new Map<string, Set<string>>();
  const deferred = new Map<string, Set<string>>();
  for (const entry of ledger) {
    if (entry.kind !== 'decision') continue;
    const kept =
      entry.decision === 'escalate' ? escalated : entry.decision === 'defer' ? deferred : undefined;
    kept?.set(entry.verifier, (kept.get(entry.verifier) ?? new Set()).add(entry.candidate));
  }
  return { escalated, deferred };
}

function calibrationOf(
  cheap: ReportTier,
  dear: ReportTier,
  designs: readonly Design[],
  confidence: number,
): CalibrationReport {
  const pairs = new Map<string, ScorePair>();
  for (const { smiles, target, verdicts } of designs) {
    const [below, above] = [verdicts[cheap.verifier]?.score, verdicts[dear.verifier]?.score];
    if (typeof below !== 'number' || typeof above !== 'number') continue;
    pairs.set(`${smiles} ${promptOf(target)}`, {
      cheap: below,
      dear: above,
      cheapPassed: below >= cheap.passAtLeast,
      dearPassed: above >= dear.passAtLeast,
    });
  }
  const all = [...pairs.values()];
  const known = addPairs(noCalibration(), all);
  const { mean: intercept } = predict(known, 0);
  const slope = predict(known, 1).mean - intercept;
  const off = all.map((pair) => pair.dear - intercept - slope * pair.cheap);
  const spread = new Set(all.map(({ cheap }) => cheap)).size > 1;
  const { passPass, passFail } = known.agreement;
  return {
    from: cheap.verifier,
    to: dear.verifier,
    pairs: all,
    line: spread ? { intercept, slope } : null,
    residual: spread ? Math.sqrt(off.reduce((sum, x) => sum + x * x, 0) / off.length) : null,
    passesHold: shareOf({ successes: passPass, trials: passPass + passFail }, confidence),
  };
}
