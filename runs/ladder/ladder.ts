import { z } from 'zod';
import { emptyAccount } from '../../core/ladder/budget.ts';
import type { Account, Budget } from '../../core/ladder/budget.ts';
import { learnedName } from '../../core/ladder/learned-tier.ts';
import { agreement, predict } from '../../core/ladder/calibration.ts';
import type { Calibration, Prediction } from '../../core/ladder/calibration.ts';
import { noTotals } from '../../core/ladder/ledger.ts';
import type { Tier } from '../../core/episode/outcome.ts';
import { changedBudget, nothingChanged, withChange } from '../../core/run-change.ts';
import type { Changed, StoredChange } from '../../core/run-change.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import type { VerificationSpec } from '../../core/schema/verification.ts';
import { readChanges } from '../../store/run/changes.ts';
import { calibrationPrefix } from '../../store/keys.ts';
import { calibrationLists } from '../../store/ladder/ladder-codecs.ts';
import { specOfRun } from '../../store/run/find-run.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import type { LadderStatus } from '../../workflows/ladder/ladder-state.ts';
import { unlessDamaged } from '../../store/objects/unless-damaged.ts';
import { askLadder } from '../temporal/ask.ts';
import type { Sources } from '../sources.ts';
import { DeferredBook } from './deferred.ts';
import type { DeferredView } from './deferred.ts';
import { Ledgers } from './ledger-book.ts';
import type { LedgerBook, LedgerSummary, TierBook } from './ledger-book.ts';
import type { Pair } from './pairs.ts';

/** A tier with what it did, the cheapest first; a verifier that only measured or swept has no place on the ladder. */
export interface TierRow extends TierBook {
  verifier: string;
  /** null of a verifier that is no tier. */
  rung: number | null;
  tier: Tier | null;
  passAtLeast: number | null;
  /** Of the stage that is escalated, or was last; null of what has none. */
  budget: { budget: Budget; account: Account } | null;
}

/** How far a tier can be trusted. */
export interface LadderCalibration extends Pair {
  /** All pairs that the ladder has counted, of which `points` are those that the ledger tells of. */
  known: Calibration | null;
  /** What the higher tier is expected to say: intercept + slope × what the cheaper one said; null where nothing is known. */
  line: { intercept: number; slope: number } | null;
  /** One standard deviation around the line in the middle of what was seen. */
  deviation: number | null;
  /** That a pass of the lower tier holds; null where no pass of it has been judged above. */
  holds: (Prediction & { held: number; of: number }) | null;
}

export interface LadderView {
  run: string;
  rungs: TierRow[];
  /** Whose budgets are shown. */
  stage: string | null;
  /**
   * `workflow`: the ladder itself has said what is spent and promised. `ledger`: it cannot be asked; what is promised to
   * computations that have not answered is not known, nor what has not been written down.
   */
  budgetsFrom: 'workflow' | 'ledger';
  /** Computations that were asked for and have not answered; null where only the ladder knows. */
  waiting: number | null;
  calibrations: LadderCalibration[];
  deferred: DeferredView;
  ledger: LedgerSummary;
  /** Spec, changes and calibrations that are damaged, and why. */
  unreadable: readonly string[];
}

/** A ladder with a long history takes a moment to remember. */
const PATIENCE_MS = 1500;
const MOST_BOOKS = 4;

const amounts = { count: z.number(), seconds: z.number(), usd: z.number() };
/** Anybody may have started a workflow of a ladder's name. */
const statusShape = z.object({
  stage: z.string().nullable(),
  waiting: z.number(),
  budgets: z.record(
    z.string(),
    z.object({
      budget: z.object({ ...amounts, perStep: z.number() }).partial(),
      account: z.object({ ...amounts, reserved: z.object(amounts) }),
    }),
  ),
});

/** What became of the candidates of runs, for whoever looks at several of them one after the other. */
export class LadderObserver {
  readonly ledgers: Ledgers;
  private readonly archives = new Map<string, DeferredBook>();
  private readonly sources: Sources;

  constructor(sources: Sources) {
    this.sources = sources;
    this.ledgers = new Ledgers(sources.store);
  }

  /**
   * null where the run has no ladder, and has asked no higher verifier either. Throws GradusError('store', 'no-run'), and
   * what the store throws when it is away.
   */
  async look(run: string): Promise<LadderView | null> {
    const { store } = this.sources;
    const damaged: string[] = [];
    const [spec, changes, book, calibrations, said] = await Promise.all([
      specOfRun(store, run, { damaged }),
      unlessDamaged(damaged, () => readChanges(store, run)),
      this.ledgers.of(run),
      unlessDamaged(damaged, () => lastCalibrations(store, run)),
      askLadder(this.sources.temporal, run, PATIENCE_MS),
    ]);
    const status = said && statusShape.safeParse(said).success ? said : null;
    const summary = book.summary();
    const verification = spec?.verification;
    if (!verification && summary.entries === 0 && damaged.length === 0) return null;
    const stage = status?.stage ?? summary.lastStage;
    return {
      run,
      stage,
      rungs: tierRows(verification, summary, status, (verifier) =>
        accountOf(spec, changesThatHold(changes ?? []), summary, stage, verifier),
      ),
      budgetsFrom: status ? 'workflow' : 'ledger',
      waiting: status?.waiting ?? null,
      calibrations: calibrationsOf(verification, calibrations, summary.pairs),
      deferred: await this.deferred(run, book, calibrations),
      ledger: summary,
      unreadable: damaged,
    };
  }

  private deferred(
    run: string,
    book: LedgerBook,
    calibrations: readonly Calibration[] | null,
  ): Promise<DeferredView> {
    const archive = this.archives.get(run) ?? new DeferredBook(this.sources.store, run);
    this.archives.delete(run);
    this.archives.set(run, archive);
    if (this.archives.size > MOST_BOOKS) this.archives.delete(this.archives.keys().next().value!);
    return archive.view(book, calibrations);
  }
}

/** The newest that a run has kept; null where it has seen no pair. */
async function lastCalibrations(store: ObjectStore, run: string): Promise<Calibration[] | null> {
  const newest = (await store.list(calibrationPrefix(run))).at(-1);
  return newest === undefined ? null : store.find(newest.key, calibrationLists);
}

const nothing = (): TierBook => ({ totals: noTotals(), asked: 0, answered: 0 });

function tierRows(
  verification: VerificationSpec | undefined,
  { rungs: did }: LedgerSummary,
  status: LadderStatus | null,
  fromLedger: (verifier: string) => TierRow['budget'],
): TierRow[] {
  const tiers = verification?.rungs ?? [];
  const others = Object.keys(did).filter((name) => !tiers.some(({ verifier }) => verifier === name));
  return [
    ...tiers.map(({ verifier, tier, passAtLeast }, rung) => ({
      ...(did[verifier] ?? nothing()),
      verifier,
      rung,
      tier,
      passAtLeast,
      // The lowest tier judges everything, and has none.
      budget: rung === 0 ? null : (status?.budgets[verifier] ?? fromLedger(verifier)),
    })),
    ...others.map((verifier) => ({
      ...did[verifier]!,
      verifier,
      rung: null,
      tier: null,
      passAtLeast: null,
      budget: null,
    })),
  ];
}

/** All that holds of what people changed: the newest change and those that it was made on; a reset has undone the others. */
function changesThatHold(changes: readonly StoredChange[]): Changed {
  const chain: StoredChange[] = [];
  for (let next = changes.at(-1); next !== undefined;) {
    chain.unshift(next);
    const { number, after } = next;
    next = after < number ? changes.find((one) => one.number === after) : undefined;
  }
  return chain.reduce(withChange, nothingChanged());
}

/** What the ledger says was spent in a stage, beside the budget that its spec, or a person since, gave it. */
function accountOf(
  spec: CurriculumSpec | null,
  changed: Changed,
  { stages, came }: LedgerSummary,
  stage: string | null,
  verifier: string,
): TierRow['budget'] {
  const verification = spec?.verification;
  const tier = verification?.rungs.find((one) => one.verifier === verifier);
  if (!tier) return null;
  const own = spec?.stages.find(({ name }) => name === stage);
  const written = (own && 'budgets' in own ? own.budgets?.[verifier] : undefined) ?? tier.budget;
  const budget = changedBudget(written, changed.budgets[verifier] ?? {});
  const { seconds, openSeconds, usd } = (stage === null ? null : stages[stage]?.[verifier]) ?? noTotals();
  const { verdicts = 0, charged = 0 } = (stage === null ? null : came[stage]?.[verifier]) ?? {};
  const count = verification?.counts === 'verdicts' ? verdicts : charged;
  return { budget, account: { ...emptyAccount(), count, seconds: seconds + openSeconds, usd } };
}

function calibrationsOf(
  verification: VerificationSpec | undefined,
  calibrations: readonly Calibration[] | null,
  pairs: readonly Pair[],
): LadderCalibration[] {
  const names = (verification?.rungs ?? []).map(({ verifier }) => verifier);
  const neighbours = names.slice(1).map((to, i) => [names[i]!, to] as const);
  const learned = verification?.learned;
  const lines = learned ? [...neighbours, [learnedName(learned.stage), names[1]!] as const] : neighbours;
  const between = lines.map(([from, to]) => {
    return pairs.find((pair) => pair.from === from && pair.to === to) ?? { from, to, points: [], count: 0 };
  });
  return between.map((pair, i) => {
    const known = calibrations?.[i] ?? null;
    if (known === null || known.n === 0) {
      return { ...pair, known, line: null, deviation: null, holds: null };
    }
    const { mean: intercept } = predict(known, 0);
    const slope = predict(known, 1).mean - intercept;
    const { deviation } = predict(known, known.x / known.n);
    const { passPass: held, passFail } = known.agreement;
    const of = held + passFail;
    const holds = of === 0 ? null : { ...agreement(known, true), held, of };
    return { ...pair, known, line: { intercept, slope }, deviation, holds };
  });
}
