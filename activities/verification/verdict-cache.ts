import { isTransientAbstention } from '../../core/ladder/abstentions.ts';
import { GradusError } from '../../core/errors.ts';
import type { TierAnswer, TierRequest } from '../../core/tier-contract.ts';
import { abstentionKey, heardKey, verdictKey } from '../../store/keys.ts';
import { verdicts } from '../../store/ladder/ladder-codecs.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';

type Named = Pick<TierRequest, 'verifier' | 'version' | 'digest'>;

/**
 * What a verifier has said of a subject, in any run; null where it has not been asked. With a run's name, also the
 * abstention that only this run has heard, and that the next one asks about again.
 */
export async function findVerdict(
  store: ObjectStore,
  { verifier, version, digest }: Named,
  { signal, run }: { signal?: AbortSignal | undefined; run?: string } = {},
): Promise<TierAnswer | null> {
  const known = await store.find(verdictKey(verifier, version, digest), verdicts, { signal });
  if (known !== null || run === undefined) return known;
  return store.find(abstentionKey(run, verifier, version, digest), verdicts, { signal });
}

/**
 * What a run's own ladder or its sweeps have heard of a subject: whatever else is in the store makes no difference to
 * it. null where they have not asked, or have not been told yet.
 */
export async function heardVerdict(
  store: ObjectStore,
  run: string,
  { verifier, version, digest }: Named,
  signal?: AbortSignal,
): Promise<TierAnswer | null> {
  return (
    (await store.find(heardKey(run, verifier, version, digest), verdicts, { signal })) ??
    store.find(abstentionKey(run, verifier, version, digest), verdicts, { signal })
  );
}

/**
 * Lets a run know a verdict that it was told of.
 * Throws GradusError('store', 'no-verdict') where none is kept.
 */
export async function putHeardVerdict(
  store: ObjectStore,
  run: string,
  { verifier, version, digest }: Named,
  signal?: AbortSignal,
): Promise<void> {
  const key = verdictKey(verifier, version, digest);
  const answer = await store.find(key, verdicts, { signal });
  if (answer === null) {
    throw new GradusError('store', 'no-verdict', `${key} was reported and is now missing: restore it`);
  }
  await store.putIfAbsent(heardKey(run, verifier, version, digest), verdicts, answer, { signal });
}

/**
 * Keeps an answer for ever; where another one was first, that one counts, and is returned. An abstention that says
 * nothing of the subject is not kept.
 * Throws GradusError('verifier', 'bad-answer') for what is none.
 */
export async function putVerdict(
  store: ObjectStore,
  asked: Named,
  answer: TierAnswer,
  signal?: AbortSignal,
): Promise<TierAnswer> {
  const problem = whatIsWrong(asked, answer);
  if (problem !== null) {
    throw new GradusError(
      'verifier',
      'bad-answer',
      `${asked.verifier} ${asked.version} ${problem}: fix its worker`,
    );
  }
  if (answer.kind === 'abstained' && isTransientAbstention(answer.type)) return answer;
  const key = verdictKey(asked.verifier, asked.version, asked.digest);
  return (await store.putIfAbsent(key, verdicts, answer, { signal })).value;
}

/** Keeps a passing abstention for the run that heard it. */
export async function putAbstention(
  store: ObjectStore,
  run: string,
  { verifier, version, digest }: Named,
  type: string,
  signal?: AbortSignal,
): Promise<void> {
  const reason = 'says nothing of the subject: another run, or a sweep, asks again';
  const spent = { seconds: 0, usd: 0 };
  const answer: TierAnswer = {
    format: 'gradus.verdict/1',
    verifier,
    version,
    digest,
    spent,
    kind: 'abstained',
    type,
    reason,
  };
  await store.putIfAbsent(abstentionKey(run, verifier, version, digest), verdicts, answer, { signal });
}

function whatIsWrong(asked: Named, answer: TierAnswer): string | null {
  if (answer.format !== 'gradus.verdict/1') return `answered in the format ${String(answer.format)}`;
  for (const field of ['verifier', 'version', 'digest'] as const) {
    if (answer[field] !== asked[field])
      return `was asked about ${field} ${asked[field]} and answered about ${answer[field]}`;
  }
  const { seconds, usd } = answer.spent ?? {};
  // In any other language the answer may hold anything: text, true and lists compare like numbers here.
  const isCost = (cost: unknown): boolean => Number.isFinite(cost) && (cost as number) >= 0;
  if (!isCost(seconds) || !isCost(usd)) {
    return `says that it spent ${JSON.stringify(seconds)} s and US$ ${JSON.stringify(usd)}`;
  }
  if (answer.kind === 'scored') {
    const { score } = answer;
    if (!Number.isFinite(score) || score < 0 || score > 1) {
      return `gave the score ${JSON.stringify(score)}, which is no number in [0, 1]`;
    }
  }
  if (answer.kind === 'measured' && !Object.values(answer.values).every((value) => Number.isFinite(value))) {
    return `measured ${JSON.stringify(answer.values).slice(0, 200)}, which are not all numbers`;
  }
  return ['scored', 'measured', 'abstained'].includes(answer.kind) ? null : `answered ${answer.kind}`;
}
