import type { Forked } from '../activities/replay/fork-episode.ts';
import type { Replayed, ReplayedToken } from '../activities/replay/replay-episode.ts';
import type { ReplayAnswer } from '../activities/replay/replay.ts';
import { placeOf } from '../runs/episodes/place.ts';
import { chance, chancesOf, differenceLine, endOfFork, quotedText, verdictOf } from '../runs/replay/words.ts';

// A replay and a fork as text for a terminal.

/** Differences that are written out. */
const MOST_DIFFERENCES = 20;

export function replayReport({ place, checkpoint, decoder, replay, fork }: ReplayAnswer): string {
  const who = `${placeOf(place)}, with the weights that sampled it (${checkpoint.weights.slice(0, 12)}, step ${checkpoint.step}), ${decoder}`;
  return [who, '', ...(replay ? replayLines(replay) : []), ...(fork ? forkLines(fork) : [])].join('\n');
}

function replayLines(replay: Replayed): string[] {
  const { tokens, turns, differences, unread } = replay;
  return [
    verdictOf(replay),
    ...(unread ? ['(its environment is not known here: what it read was taken as it is)'] : []),
    ...differences.slice(0, MOST_DIFFERENCES).map(differenceLine),
    ...(differences.length > MOST_DIFFERENCES
      ? [`… and ${differences.length - MOST_DIFFERENCES} more (--json has all)`]
      : []),
    ...turns.flatMap((turn, i) => ['', `turn ${i + 1}`, ...turnLines(tokens, turns, i)]),
  ];
}

function turnLines(tokens: readonly ReplayedToken[], turns: Replayed['turns'], i: number): string[] {
  const { start, end } = turns[i]!;
  const before = i === 0 ? tokens.slice(0, start) : [];
  const after = tokens.slice(end, turns[i + 1]?.start ?? tokens.length);
  return [
    ...(before.length > 0 ? [`        it was made to begin with ${quotedText(textOf(before))}`] : []),
    ...tokens.slice(start, end).map((token, n) => tokenLine(start + n, token)),
    ...(after.length > 0 ? [`        ← ${quotedText(textOf(after))}`] : []),
  ];
}

function tokenLine(position: number, token: ReplayedToken): string {
  const { id, text, alternatives = [] } = token;
  const { all, kept } = chancesOf(token);
  const others = alternatives
    .filter((one) => one.id !== id)
    .map((one) => `${one.id} ${quotedText(one.text)} ${chance(one.logprob)}`);
  const cut = kept === null ? '' : ` (${kept} behind the cut)`;
  return `${String(position).padStart(6)}  ${quotedText(text).padEnd(16)} ${all.padStart(8)}${cut}   ${others.join('  ')}`.trimEnd();
}

const textOf = (tokens: readonly ReplayedToken[]): string => tokens.map(({ text }) => text).join('');

function forkLines({ at, tokens, turns, status, outcome, stopped }: Forked): string[] {
  const first = turns.findIndex(({ end }) => end > at);
  return [
    `forked at ${at}: nothing of it is stored`,
    ...turns.slice(Math.max(0, first)).flatMap(({ text, observation, start, end }, n) => {
      const before = n === 0 && at > start ? textOf(tokens.slice(start, at)) : '';
      const message = n === 0 && before !== '' ? `${before} ⟦${textOf(tokens.slice(at, end))}⟧` : text;
      return [
        '',
        `turn ${Math.max(0, first) + n + 1}`,
        message.trimEnd(),
        ...(observation ? [`← ${observation.text}`] : []),
      ];
    }),
    '',
    endOfFork({ status, outcome, stopped }),
  ];
}
