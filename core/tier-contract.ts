import type { Json } from './json/json.ts';

/**
 * What a tier's worker is asked and what it answers: the same JSON in every language, held by the golden files in
 * `test/golden/tier-contract`. The activity is called `verifySubject`; it runs on the queue that `tierQueue` names.
 */
export interface TierRequest {
  format: 'gradus.verify/1';
  verifier: string;
  version: string;
  /** Lower-case hex SHA-256 of the canonical JSON of `subject`; with verifier and version it names the verdict for ever. */
  digest: string;
  /** What is judged, made canonical by the environment, without anything that the verdict does not depend on. */
  subject: Json;
}

/** What one computation really took. */
export interface Spent {
  seconds: number;
  usd: number;
}

/**
 * What a tier found. `measured` gives quantities (with their units in their names, e.g. `gap_eV`) which the
 * environment turns into a score for the task at hand, so that one measurement serves every task. `abstained` is for
 * what cannot be judged (no convergence, a bad geometry, a judge's error); it is never a zero. A worker that cannot do
 * its work *now* throws instead, and is tried again.
 */
export type TierAnswer = {
  format: 'gradus.verdict/1';
  verifier: string;
  version: string;
  digest: string;
  spent: Spent;
  /** For people: what the verdict rests on. Small (below 4 KB). */
  evidence?: string;
} & (
  | { kind: 'scored'; score: number; uncertainty?: number }
  | { kind: 'measured'; values: Record<string, number>; uncertainties?: Record<string, number> }
  | { kind: 'abstained'; type: string; reason: string }
);
