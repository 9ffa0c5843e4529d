import type { Forked } from '../../activities/replay/fork-episode.ts';
import type { ReplayDifference, Replayed, ReplayedToken } from '../../activities/replay/replay-episode.ts';

// What came of a replay, or of a fork, in words.

/** Characters of a text that stand in a line. */
const MOST_CHARACTERS = 300;

/** In one sentence. */
export function verdictOf({ equal, sampled, turns, differences }: Replayed): string {
  if (sampled === 0 && equal) return 'nothing was sampled in it: there is nothing to compare';
  const what = `${sampled} tokens of ${turns.length} ${turns.length === 1 ? 'turn' : 'turns'} sampled again`;
  if (equal) return `${what}: every one is the same, with the same log-prob to the bit`;
  const others = differences.filter(({ kind }) => kind === 'token').length;
  const tokens = others === 0 ? 'every token is the same' : `${others} came out as another token`;
  const count = `${differences.length} ${differences.length === 1 ? 'difference' : 'differences'} in all`;
  return `${what}: ${tokens}; ${count}`;
}

/** What was recorded, and what comes out now. */
export function differenceLine(difference: ReplayDifference): string {
  const at = `at ${difference.position} (turn ${difference.turn})`;
  switch (difference.kind) {
    case 'token': {
      const { recorded, replayed } = difference;
      return `${at}: it was ${quotedText(recorded.text)} (${recorded.logprob}), and is ${quotedText(replayed.text)} (${replayed.logprob})`;
    }
    case 'logprob':
      return `${at}: its log-prob was ${difference.recorded}, and is ${difference.replayed}`;
    case 'kept':
      return `${at}: it was drawn among ${difference.recorded.length || 'all'} tokens, and is among ${difference.replayed.length || 'all'}`;
    default:
      return `${at}: ${difference.what}`;
  }
}

/** How a fork ended, and what it is worth. */
export function endOfFork({
  status,
  outcome,
  stopped,
}: Pick<Forked, 'status' | 'outcome' | 'stopped'>): string {
  if (stopped !== null) return `stopped: ${stopped}`;
  const how =
    status.kind === 'answered'
      ? `answered: ${status.answer.trim()}`
      : status.kind === 'truncated'
        ? `cut: no more ${status.limit}`
        : status.kind === 'failed'
          ? `failed: ${status.reason}`
          : status.kind;
  if (outcome === null || !('components' in outcome)) {
    const why =
      outcome !== null && 'reason' in outcome && status.kind !== 'failed' ? ` (${outcome.reason})` : '';
    return `${how}; no reward${why}`;
  }
  const parts = outcome.components
    .map(({ verifier, score }) => `${verifier} ${score === null ? 'abstained' : short(score)}`)
    .join(', ');
  return `${how}; reward ${short(outcome.reward)} (${parts})`;
}

const short = (value: number): number => Number(value.toPrecision(3));

/** A text within a line. */
export const quotedText = (text: string): string =>
  JSON.stringify(text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text);

/** A probability. */
export const chance = (logprob: number): string => {
  const percent = 100 * Math.exp(logprob);
  const few = percent >= 0.001 ? Number(percent.toPrecision(1)) : percent.toExponential(0);
  return `${percent >= 0.1 || percent === 0 ? percent.toFixed(1) : few} %`;
};

/** How likely a sampled token was: among all, as its alternatives are, and among what a cut left, where there was one. */
export function chancesOf({ id, logprob, alternatives = [] }: ReplayedToken): {
  all: string;
  kept: string | null;
} {
  const own = alternatives.find((one) => one.id === id)?.logprob ?? logprob!;
  return { all: chance(own), kept: logprob === own ? null : chance(logprob!) };
}
