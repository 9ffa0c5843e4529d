import type { LedgerEntry } from '../../core/ladder/ledger.ts';
import { isLadderWriter } from '../../core/ladder/requests.ts';
import type { VerdictRequest, WantedVerdict } from '../../core/ladder/requests.ts';
import { GradusError } from '../../core/errors.ts';
import type { TierAnswer } from '../../core/tier-contract.ts';
import { assertRun } from '../../store/run/find-run.ts';
import { DIGEST_FORM } from '../../store/digest.ts';
import {
  abstentionKey,
  archiveKey,
  asksKey,
  asksPrefix,
  heardKey,
  verdictKey,
  writerOf,
} from '../../store/keys.ts';
import { verdicts, wishes } from '../../store/ladder/ladder-codecs.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { inOrder, offeredName } from './ledger-book.ts';
import type { LedgerBook, PlacedEntry } from './ledger-book.ts';

/** What one verifier was asked of a candidate, and said. */
export interface SubjectView {
  verifier: string;
  /** null where the run has not come to ask. */
  version: string | null;
  digest: string;
  /** As it was asked; null where this run never asked, because the verdict was there already. */
  ask: VerdictRequest | null;
  answer: TierAnswer | null;
  /** What this run paid; null where others did, or nobody has yet. */
  spent: { seconds: number; usd: number } | null;
  late: boolean;
  /** After the run itself had come to its end. */
  afterRun: boolean;
}

/** An episode that proposed the candidate. */
export interface Proposal {
  /** As the ledger names it. */
  id: string;
  stage: string;
  step: number;
  /** Of the rollout group, and its number, null where its name has none. */
  name: string;
  group: number | null;
  /** Index of its task in the group, and of the sample of that task. */
  task: number;
  sample: number;
}

/** A candidate's way up the ladder. */
export interface CandidateLife {
  run: string;
  /** The one that was asked for first, then what other tiers were asked of the same candidate. */
  subjects: SubjectView[];
  events: PlacedEntry[];
  /** Pages of the ledger that have more of it, and are not shown. */
  left: number;
  proposals: Proposal[];
  moreProposals: number;
}

/** One answer to many tasks: some episodes tell its way as well as all. */
const MOST_PROPOSALS = 40;
const MOST_SUBJECTS = 12;
const MOST_EVENTS = 500;
const MOST_PAGES_OF_ASKS = 40;

/**
 * Every decision, verdict and withdrawal of one subject in a run, and of what other tiers were asked of the same
 * candidates. Throws GradusError('store', 'no-run' | 'no-candidate').
 */
export async function candidateLife(
  store: ObjectStore,
  book: LedgerBook,
  run: string,
  { verifier, digest }: { verifier: string; digest: string },
): Promise<CandidateLife> {
  await assertRun(store, run);
  const missing = (): GradusError =>
    new GradusError(
      'store',
      'no-candidate',
      `the ladder of ${run} knows no subject ${digest.slice(0, 80)} of ${verifier.slice(0, 80)}`,
    );
  if (!DIGEST_FORM.test(digest)) throw missing();
  const isOf = (entry: LedgerEntry): boolean =>
    'digest' in entry && entry.digest === digest && entry.verifier === verifier;
  const own = await book.find([digest], isOf);
  if (own.entries.length === 0) throw missing();
  const candidates = [
    ...new Set(own.entries.flatMap(({ entry }) => (entry.kind === 'decision' ? [entry.candidate] : []))),
  ];
  const shown = candidates.slice(-MOST_PROPOSALS);
  const theirs = new Set(shown);
  const decided = await book.find(shown, (entry) => entry.kind === 'decision' && theirs.has(entry.candidate));
  const asked = new Map([[`${verifier}/${digest}`, { verifier, digest }]]);
  for (const { entry } of decided.entries) {
    if (entry.kind !== 'decision' || !DIGEST_FORM.test(entry.digest)) continue;
    if (asked.size < MOST_SUBJECTS) {
      asked.set(`${entry.verifier}/${entry.digest}`, { verifier: entry.verifier, digest: entry.digest });
    }
  }
  const steps = new Set(shown.flatMap((id) => stepOf(id) ?? []));
  const came = await book.find(
    [
      ...[...asked.values()].map((one) => one.digest),
      ...[...steps].map((step) => offeredName(...placeIn(step))),
    ],
    (entry) => {
      if (entry.kind === 'offered') return steps.has(`${entry.stage}/${entry.fromStep}`);
      return entry.kind !== 'decision' && asked.has(`${entry.verifier}/${entry.digest}`);
    },
  );
  // In the order of the pages; within one, decisions come after the verdicts that they rest on.
  const events = merged(came.entries, decided.entries);
  const about = { store, run, events };
  const subjects = await Promise.all([...asked.values()].map((one) => subjectOf(about, one)));
  return {
    run,
    subjects,
    events: events.slice(-MOST_EVENTS),
    left: own.left + decided.left + came.left,
    proposals: shown.flatMap((id) => proposalOf(id) ?? []),
    moreProposals: candidates.length - shown.length,
  };
}

interface About {
  store: ObjectStore;
  run: string;
  events: readonly PlacedEntry[];
}

async function subjectOf(
  { store, run, events }: About,
  { verifier, digest }: { verifier: string; digest: string },
): Promise<SubjectView> {
  const of = events.filter(
    ({ entry }) => 'digest' in entry && entry.digest === digest && entry.verifier === verifier,
  );
  const verdict = of.findLast(({ entry }) => entry.kind === 'verdict')?.entry as
    Extract<LedgerEntry, { kind: 'verdict' }> | undefined;
  const ask = await askOf(store, run, of, { verifier, digest });
  const version = verdict?.version ?? ask?.request.version ?? null;
  const find = (key: string): Promise<TierAnswer | null> => store.find(key, verdicts);
  const answer =
    version === null
      ? null
      : ((await find(heardKey(run, verifier, version, digest))) ??
        (await find(verdictKey(verifier, version, digest))) ??
        (await find(abstentionKey(run, verifier, version, digest))));
  return {
    verifier,
    version,
    digest,
    ask,
    answer,
    spent: verdict?.spent ?? null,
    late: verdict?.late ?? false,
    afterRun: verdict?.afterRun ?? false,
  };
}

/** What was asked lies beside the page of the ledger that says so, whether it was asked, deferred or taken back. */
async function askOf(
  store: ObjectStore,
  run: string,
  of: readonly PlacedEntry[],
  { verifier, digest }: { verifier: string; digest: string },
): Promise<VerdictRequest | null> {
  const among = (list: readonly WantedVerdict[] | null): VerdictRequest | null =>
    list?.find(({ ask }) => ask.request.digest === digest && ask.request.verifier === verifier)?.ask ?? null;
  for (const { writer, sequence, entry } of of) {
    const isPlan = entry.kind === 'decision' && ['escalate', 'defer'].includes(entry.decision);
    if (!isPlan && entry.kind !== 'withdrawn') continue;
    for (const key of [asksKey(run, writer, sequence), archiveKey(run, writer, sequence)]) {
      const found = among(await store.find(key, wishes));
      if (found) return found;
    }
  }
  if (of.every(({ writer }) => isLadderWriter(writer))) return null;
  // An evaluation or a sweep asks for all that it wants at once, under names that its verdicts do not have.
  const others = (await store.list(asksPrefix(run))).filter(({ key }) => !isLadderWriter(writerOf(key)));
  for (const { key } of others.slice(-MOST_PAGES_OF_ASKS)) {
    const found = among(await store.find(key, wishes));
    if (found) return found;
  }
  return null;
}

const stepOf = (id: string): string | null => {
  const proposal = proposalOf(id);
  return proposal && `${proposal.stage}/${proposal.step}`;
};

function placeIn(step: string): [stage: string, step: number] {
  const [stage, number] = step.split('/') as [string, string];
  return [stage, Number(number)];
}

/** `rl/3/group-0002/0/5`; null for what names no episode. */
export function proposalOf(id: string): Proposal | null {
  const [, stage, step, name, task, sample] = /^([^/]+)\/(\d+)\/(.+)\/(\d+)\/(\d+)$/.exec(id) ?? [];
  if (stage === undefined) return null;
  const group = /^group-(\d+)$/.exec(name!)?.[1];
  return {
    id,
    stage,
    step: Number(step),
    name: name!,
    group: group === undefined ? null : Number(group),
    task: Number(task),
    sample: Number(sample),
  };
}

/** Both are in the order of the ledger: of a page the first comes first. */
const merged = (first: readonly PlacedEntry[], second: readonly PlacedEntry[]): PlacedEntry[] =>
  [...first, ...second].toSorted(inOrder);
