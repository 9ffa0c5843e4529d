import { expect, test } from 'vitest';
import type { Replayed } from '../../../../activities/replay/replay-episode.ts';
import { parseFork } from '../../../../cli/commands/replay.ts';
import { replayReport } from '../../../../cli/replay-report.ts';
import { chance, chancesOf, differenceLine, endOfFork, verdictOf } from '../../../../runs/replay/words.ts';

const token = (id: number, logprob: number) => ({ id, text: `<${id}>`, logprob });
const replayed = (over: Partial<Replayed> = {}): Replayed => ({
  equal: true,
  sampled: 2,
  differences: [],
  unread: false,
  promptTokens: 3,
  turns: [{ start: 1, end: 3 }],
  tokens: [
    { id: 7, text: 'call ' },
    { ...token(8, -0.5), alternatives: [token(8, -0.5), token(9, -2)] },
    { ...token(10, 0), alternatives: [token(10, -1)] },
    { id: 11, text: 'said\n' },
  ],
  ...over,
});

test('what differs is told with both tokens, or both log-probs, and where', () => {
  const differences: Replayed['differences'] = [
    { kind: 'token', turn: 1, position: 1, recorded: token(8, -0.5), replayed: token(9, -2) },
    { kind: 'logprob', turn: 1, position: 2, recorded: -1, replayed: -1.5 },
    { kind: 'kept', turn: 1, position: 2, recorded: [1, 2], replayed: [] },
    { kind: 'text', turn: 2, position: 3, what: 'it would end elsewhere now' },
  ];
  expect(differences.map(differenceLine)).toEqual([
    'at 1 (turn 1): it was "<8>" (-0.5), and is "<9>" (-2)',
    'at 2 (turn 1): its log-prob was -1, and is -1.5',
    'at 2 (turn 1): it was drawn among 2 tokens, and is among all',
    'at 3 (turn 2): it would end elsewhere now',
  ]);
  expect(verdictOf(replayed({ equal: false, differences }))).toBe(
    '2 tokens of 1 turn sampled again: 1 came out as another token; 4 differences in all',
  );
  expect(verdictOf(replayed({ equal: false, differences: differences.slice(1) }))).toContain(
    'every token is the same; 3 differences in all',
  );
});

test('a probability is that among all tokens, and the one behind a cut beside it', () => {
  const { tokens } = replayed();
  expect(chancesOf(tokens[1]!)).toEqual({ all: '60.7 %', kept: null });
  expect(chancesOf(tokens[2]!)).toEqual({ all: '36.8 %', kept: '100.0 %' });
  expect(chance(-20)).toBe('2e-7 %');
  expect(chance(Math.log(0.0004567))).toBe('0.05 %');
});

test('the report has a line a token, what was read between them, and no other lines of what was read', () => {
  const place = { run: 'r', stage: 's', step: 1, group: 0, episode: 2 };
  const report = replayReport({
    place,
    checkpoint: { key: 'k', step: 4, weights: '0123456789abcdef' },
    stored: { status: { kind: 'ended' } },
    decoder: 'a decoder',
    replay: replayed(),
    fork: null,
  });
  expect(report.split('\n')).toEqual([
    'r/s/1/0/2, with the weights that sampled it (0123456789ab, step 4), a decoder',
    '',
    '2 tokens of 1 turn sampled again: every one is the same, with the same log-prob to the bit',
    '',
    'turn 1',
    '        it was made to begin with "call "',
    '     1  "<8>"              60.7 %   9 "<9>" 13.5 %',
    '     2  "<10>"             36.8 % (100.0 % behind the cut)',
    '        ← "said\\n"',
  ]);
});

test('a fork says how it ended and what that is worth, or why not', () => {
  const status = { kind: 'answered', answer: ' 4 ' } as const;
  const component = { verifier: 'exact', version: '1', score: 1, contribution: 1 };
  const scored = { kind: 'scored', reward: 1, components: [component] } as const;
  expect(endOfFork({ status, outcome: { ...scored, components: [component] }, stopped: null })).toBe(
    'answered: 4; reward 1 (exact 1)',
  );
  expect(endOfFork({ status, outcome: { kind: 'abstained', reason: 'why' }, stopped: null })).toBe(
    'answered: 4; no reward (why)',
  );
  expect(endOfFork({ status, outcome: null, stopped: 'it must not' })).toBe('stopped: it must not');
});

test('a fork is written as a position, with the id of a token or without', () => {
  expect(parseFork('12')).toEqual({ at: 12, token: null });
  expect(parseFork('0=345')).toEqual({ at: 0, token: 345 });
  for (const text of ['', '-1', '1=', '=3', '1=x', '1e3']) expect(() => parseFork(text)).toThrow(/position/);
});

test('of an episode in which nothing was sampled nothing is said to be the same', () => {
  expect(verdictOf(replayed({ sampled: 0, turns: [], tokens: [] }))).not.toContain('the same');
});
