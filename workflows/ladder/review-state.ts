import type { Opinion, Withdrawal } from '../../core/ladder/opinions.ts';
import type { VerdictRequest } from '../../core/ladder/requests.ts';
import type { TierAnswer } from '../../core/tier-contract.ts';

/** What people are asked, and what they have said so far. */
export interface ReviewState {
  /** The run that asked first; null where the review was begun by hand. */
  run: string | null;
  /** Ids of the workflows that wait for it, such as the ladders of runs. Absent where an older version answers. */
  waiting?: string[];
  /** The subject, and in `cheaper` what lower tiers have said of it. */
  ask: VerdictRequest;
  reviewers: number;
  /** ISO 8601; after it the verdict is an abstention. */
  deadline: string;
  opinions: Opinion[];
  /** What was taken back, the newest twenty. */
  withdrawn: Withdrawal[];
  /** What it came to, once it is closed; null while it is open. */
  verdict: TierAnswer | null;
}
