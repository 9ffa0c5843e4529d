import { z } from 'zod';
import type { Calibration } from '../../core/ladder/calibration.ts';
import type { LedgerEntry } from '../../core/ladder/ledger.ts';
import type { LedgerPlace, WantedVerdict } from '../../core/ladder/requests.ts';
import type { BlobRef } from '../../core/refs.ts';
import type { Outcome } from '../../core/episode/outcome.ts';
import type { LateMove } from '../../core/training/task-draw.ts';
import type { TierAnswer } from '../../core/tier-contract.ts';
import { jsonCodec } from '../codec.ts';
import { DIGEST_FORM } from '../digest.ts';
import { blobRef } from '../training/manifest.ts';

// What the ladder keeps. Fields that nobody decides by are not looked at.

const spent = z.looseObject({ seconds: z.number().min(0), usd: z.number().min(0) });

const named = { verifier: z.string(), version: z.string(), digest: z.string().regex(DIGEST_FORM) };

const wish = z.looseObject({
  ask: z.looseObject({
    request: z.looseObject({ format: z.literal('gradus.verify/1'), ...named, subject: z.json() }),
    environment: z.string(),
    cost: spent,
    limits: z.looseObject({
      timeoutSeconds: z.number(),
      heartbeatSeconds: z.number(),
      maxAttempts: z.number(),
    }),
    served: z.discriminatedUnion('by', [
      z.looseObject({ by: z.literal('queue'), queue: z.string() }),
      z.looseObject({ by: z.literal('people'), reviewers: z.int() }),
    ]),
  }),
  value: z.number(),
  basis: z.looseObject({ rung: z.int(), score: z.number(), learned: z.string().optional() }).nullable(),
});

/** What a plan asks, and what it had no budget for. */
export const wishes = jsonCodec<WantedVerdict[]>('an array of asks', z.array(wish));

const ledgerEntry = z.looseObject({
  kind: z.enum(['decision', 'verdict', 'lost', 'withdrawn', 'offered']),
  stage: z.string(),
});

export const ledgerPages = jsonCodec<LedgerEntry[]>('a page of a ledger', z.array(ledgerEntry));

const agreement = z.looseObject({
  passPass: z.int(),
  passFail: z.int(),
  failPass: z.int(),
  failFail: z.int(),
});

const calibration = z.looseObject({
  n: z.int(),
  x: z.number(),
  y: z.number(),
  xx: z.number(),
  xy: z.number(),
  yy: z.number(),
  agreement,
});

export const calibrationLists = jsonCodec<Calibration[]>('a list of calibrations', z.array(calibration));

const place = z.looseObject({ writer: z.string(), sequence: z.int() });

/** Which request has counted the pairs of a subject. */
export const pairClaims = jsonCodec<LedgerPlace>("a claim to a subject's pairs", place);

/** What a request has added to the calibrations. */
export interface Counted {
  /** With the pairs that came. */
  calibrations: Calibration[];
  /** The subjects whose pairs these are, by digest. */
  counted: string[];
}

/** What is kept of a decision besides. */
export interface Decided {
  /** Where the rest of it is written, by whichever ladder of the run has decided. Absent of an older version: where it is asked from. */
  ledger?: LedgerPlace;
}

const counted = {
  calibrations: z.array(calibration),
  counted: z.array(z.string()),
  ledger: place.optional(),
};

/** A plan of a tier. */
export interface StoredPlan extends Counted, Decided {
  asks: WantedVerdict[];
  /** What is asked has left no place for more. */
  more: boolean;
  /** What there is no budget for. */
  deferred: WantedVerdict[];
  entries: LedgerEntry[];
}

export const plans = jsonCodec<StoredPlan>(
  'a plan of the ladder',
  z.looseObject({
    ...counted,
    asks: z.array(wish),
    more: z.boolean(),
    deferred: z.array(wish),
    entries: z.array(ledgerEntry),
  }),
);

/** How a group is judged anew. */
export interface GroupSettlement {
  /** Key of the group as the fast tier has judged it. */
  of: string;
  /** The step that it is of, and where it is. Absent of what an older version has decided. */
  from?: { stage: string; step: number; ref: BlobRef };
  /** Of an earlier step, whose verdicts came late. */
  late: boolean;
  /** By `task/sample`. */
  outcomes: Record<string, Outcome>;
  /** Their rewards are others than before: the learner sees them again. */
  offered: boolean;
  /** What its episodes were judged to be when they were last learnt from, by `task/sample`; empty for a new step. */
  learntAs: Record<string, Outcome>;
}

/** What the highest verdicts of a step came to. */
export interface Settlement extends Counted, Decided {
  groups: GroupSettlement[];
  /** By how much late verdicts change what their steps had counted. */
  moves: LateMove[];
  entries: LedgerEntry[];
}

const outcome = z.looseObject({ kind: z.string() });

export const settlements = jsonCodec<Settlement>(
  'a settlement of the ladder',
  z.looseObject({
    ...counted,
    groups: z.array(
      z.looseObject({
        of: z.string(),
        from: z.looseObject({ stage: z.string(), step: z.int(), ref: blobRef }).optional(),
        late: z.boolean(),
        offered: z.boolean(),
        outcomes: z.record(z.string(), outcome),
        learntAs: z.record(z.string(), outcome),
      }),
    ),
    moves: z.array(
      z.looseObject({ successes: z.number(), trials: z.number(), stage: z.string(), step: z.int() }),
    ),
    entries: z.array(ledgerEntry),
  }),
);

const score = z.number().min(0).max(1);
const answer = { format: z.literal('gradus.verdict/1'), ...named, spent };

export const verdicts = jsonCodec<TierAnswer>(
  'a verdict of gradus.verdict/1',
  z.discriminatedUnion('kind', [
    z.looseObject({ ...answer, kind: z.literal('scored'), score }),
    z.looseObject({ ...answer, kind: z.literal('measured'), values: z.record(z.string(), z.number()) }),
    z.looseObject({ ...answer, kind: z.literal('abstained'), type: z.string(), reason: z.string() }),
  ]),
);
