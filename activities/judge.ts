import type { Episode } from '../core/episode.ts';
import { messageOf } from '../core/errors.ts';
import { LADDER } from '../core/ladder/requests.ts';
import type { Outcome } from '../core/outcome.ts';
import type { TaskRef } from '../core/refs.ts';
import { composeReward } from '../core/reward.ts';
import type { VerdictOfVerifier } from '../core/reward.ts';
import type { RewardSpec } from '../core/spec.ts';
import type { Candidate, Environment, Verifier } from '../environments/contract.ts';

/** A fast verifier that takes longer has hung, and abstains, milliseconds. */
export const FAST_LIMIT_MS = 10_000;

export function candidateOf(environment: Environment, ref: TaskRef, episode: Episode): Candidate {
  const { status } = episode;
  return {
    task: environment.task(ref),
    episode,
    answer: status.kind === 'answered' ? status.answer : null,
    tools: environment.tools.map((tool) => tool.name),
  };
}

/**
 * Asks the fast verifiers that the reward names, and composes what they say. The component `ladder` is what `climbed`
 * says, and as long as no dearer rung has spoken, what the lowest rung does.
 */
export async function judge(
  environment: Environment,
  ref: TaskRef,
  episode: Episode,
  reward: RewardSpec,
  signal: AbortSignal,
  climbed?: VerdictOfVerifier,
): Promise<Outcome> {
  const { status } = episode;
  if (status.kind === 'failed') return { kind: 'failed', boundary: status.boundary, reason: status.reason };
  const candidate = candidateOf(environment, ref, episode);
  const verdicts: VerdictOfVerifier[] = [];
  const asked = async (name: string): Promise<VerdictOfVerifier> => {
    const verifier = environment.verifiers.find((other) => other.name === name);
    if (verifier) return judgeBy(verifier, candidate, signal);
    return { verifier: name, version: '', score: null, evidence: `${environment.name} has no such verifier` };
  };
  for (const { verifier: name } of reward.components) {
    if (name !== LADDER) verdicts.push(await asked(name));
    else
      verdicts.push(climbed ?? lowestRung(await asked(reward.ladder!.verifier), reward.ladder!.passAtLeast));
  }
  const composed = composeReward(reward.components, verdicts);
  if (composed.kind !== 'scored' || status.kind !== 'truncated') return composed;
  return { ...composed, kind: 'truncated', limit: status.limit };
}

function lowestRung(said: VerdictOfVerifier, passAtLeast: number): VerdictOfVerifier {
  const version = `${said.verifier}@${said.version}`;
  return { ...said, verifier: LADDER, version, passed: said.score !== null && said.score >= passAtLeast };
}

/** A verifier that throws, or says what is no score, abstains: its error is never a zero. */
export async function judgeBy(
  verifier: Verifier,
  candidate: Candidate,
  signal: AbortSignal,
): Promise<VerdictOfVerifier> {
  const { name, version } = verifier;
  if (verifier.tier !== 'fast')
    return {
      verifier: name,
      version,
      score: null,
      evidence: `${verifier.tier} verifiers are rungs of a ladder, not components of a reward`,
    };
  try {
    const verdict = await inTime(signal, (limited) => verifier.verify(candidate, { signal: limited }));
    if (verdict.kind === 'abstain') return { verifier: name, version, score: null, evidence: verdict.reason };
    const { score, evidence } = verdict;
    if (!(score >= 0 && score <= 1)) {
      return { verifier: name, version, score: null, evidence: `said ${score}, which is no score in [0, 1]` };
    }
    return { verifier: name, version, score, ...(evidence === undefined ? {} : { evidence }) };
  } catch (error) {
    signal.throwIfAborted();
    return { verifier: name, version, score: null, evidence: `threw: ${messageOf(error)}` };
  }
}

/** Ends with the first of: what `work` gives, the signal, the limit. What goes on all the same is nobody's any more. */
async function inTime<T>(signal: AbortSignal, work: (signal: AbortSignal) => T | Promise<T>): Promise<T> {
  const controller = new AbortController();
  const stop = (): void => controller.abort(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  const late = new Error(`gave no verdict in ${FAST_LIMIT_MS / 1000} s`);
  const timer = setTimeout(() => controller.abort(late), FAST_LIMIT_MS);
  try {
    return await new Promise<T>((resolve, reject) => {
      controller.signal.addEventListener('abort', () => reject(controller.signal.reason as Error));
      Promise.resolve()
        .then(() => work(controller.signal))
        .then(resolve, reject);
    });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}
