import { isPassing } from '../core/ladder/abstentions.ts';
import { GradusError } from '../core/errors.ts';
import type { TierAnswer, TierRequest } from '../core/tier-contract.ts';
import { abstentionKey, verdictKey } from './store/keys.ts';
import type { ObjectStore } from './store/object-store.ts';

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
  const ref =
    (await store.head(verdictKey(verifier, version, digest), { signal })) ??
    (run === undefined
      ? undefined
      : await store.head(abstentionKey(run, verifier, version, digest), { signal }));
  return ref ? ((await store.getJson(ref, { signal })) as unknown as TierAnswer) : null;
}

/**
 * Keeps an answer for ever; where another one was first, that one counts, and is returned. An abstention that says
 * nothing of the subject is not kept.
 * Throws GradusError('verifier', 'bad-answer') for what is none.
 */
export async function keepVerdict(
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
      `${asked.verifier} ${asked.version} ${problem}: mend its worker`,
    );
  }
  if (answer.kind === 'abstained' && isPassing(answer.type)) return answer;
  const ref = await store.putJson(verdictKey(asked.verifier, asked.version, asked.digest), answer, {
    signal,
  });
  return (await store.getJson(ref, { signal })) as unknown as TierAnswer;
}

/** Keeps a passing abstention for the run that heard it. */
export async function keepAbstention(
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
  await store.putJson(abstentionKey(run, verifier, version, digest), answer, { signal });
}

function whatIsWrong(asked: Named, answer: TierAnswer): string | null {
  if (answer.format !== 'gradus.verdict/1') return `answered in the format ${String(answer.format)}`;
  for (const field of ['verifier', 'version', 'digest'] as const) {
    if (answer[field] !== asked[field])
      return `was asked about ${field} ${asked[field]} and answered about ${answer[field]}`;
  }
  const { seconds, usd } = answer.spent;
  if (!(seconds >= 0 && usd >= 0)) return `says that it spent ${seconds} s and US$ ${usd}`;
  if (answer.kind === 'scored' && !(answer.score >= 0 && answer.score <= 1)) {
    return `gave the score ${answer.score}, which is not in [0, 1]`;
  }
  return ['scored', 'measured', 'abstained'].includes(answer.kind) ? null : `answered ${answer.kind}`;
}
