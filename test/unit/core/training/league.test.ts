import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RandomStream } from '../../../../core/random.ts';
import type { LeagueDraw } from '../../../../core/schema/stages/earlier-policy.ts';
import { drawOpponent, recordMeeting, scoreAgainst, scoreOf } from '../../../../core/training/league.ts';
import type { LeagueRecord } from '../../../../core/training/league.ts';
import type { SelfPlayFacts } from '../../../../core/training/step-facts.ts';

const NAMES = ['easy', 'even', 'hard'];

/** How often each is met, as parts of all draws. */
function metOf(draw: LeagueDraw | undefined, league: LeagueRecord, draws = 20_000): number[] {
  const met = NAMES.map(() => 0);
  for (let step = 0; step < draws; step++)
    met[drawOpponent(NAMES, draw ? { draw } : {}, league, new RandomStream(1, 'opponent', step))]!++;
  return met.map((count) => count / draws);
}

describe('an opponent of a league', () => {
  // Estimates 0.9, 0.5 and 0.1: (0.5 + score) / (1 + steps).
  const league = {
    easy: { score: 8.5, steps: 9 },
    even: { score: 4.5, steps: 9 },
    hard: { score: 0.5, steps: 9 },
  };

  test.each<[LeagueDraw, number[]]>([
    ['uniform', [1, 1, 1]],
    ['hard', [0.01, 0.25, 0.81]],
    ['variance', [0.09, 0.25, 0.09]],
  ])('is drawn %s as often as its weight says', (draw, weights) => {
    const sum = weights.reduce((a, b) => a + b);
    // Five standard deviations of a part of 20,000 draws are below 0.018.
    metOf(draw, league).forEach((part, i) => expect(Math.abs(part - weights[i]! / sum)).toBeLessThan(0.018));
  });

  test('is drawn as before where nothing is said of it', () => {
    expect(metOf(undefined, league, 300)).toEqual(metOf('uniform', league, 300));
    const first = new RandomStream(1, 'opponent', 7).int(0, 2);
    expect(drawOpponent(NAMES, {}, league, new RandomStream(1, 'opponent', 7))).toBe(first);
  });

  test('that nobody has met counts as even', () => {
    expect(scoreAgainst(undefined)).toBe(1 / 2);
    metOf('hard', {}).forEach((part) => expect(Math.abs(part - 1 / 3)).toBeLessThan(0.018));
  });

  test('is met again and again, however it was', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom(...NAMES), fc.double({ min: 0, max: 1, noNaN: true })), {
          maxLength: 200,
        }),
        (meetings) => {
          const record = meetings.reduce<LeagueRecord>(
            (before, [name, score]) => recordMeeting(before, name, score),
            {},
          );
          for (const name of NAMES) {
            // 0.9 a step leaves at most ten steps of meetings.
            expect(scoreAgainst(record[name])).toBeGreaterThanOrEqual(0.5 / 11 - 1e-9);
            expect(scoreAgainst(record[name])).toBeLessThanOrEqual(10.5 / 11 + 1e-9);
          }
        },
      ),
    );
  });

  test('that becomes easy is met less, and looked at again in time', () => {
    let record: LeagueRecord = {};
    for (let i = 0; i < 30; i++) record = recordMeeting(record, 'easy', 1);
    const weight = (): number => (1 - scoreAgainst(record['easy'])) ** 2;
    const learnt = weight();
    expect(learnt).toBeLessThan(0.003);
    for (let i = 0; i < 30; i++) record = recordMeeting(record, 'hard', 0);
    expect(weight()).toBeGreaterThan(30 * learnt);
  });
});

describe('the score of a step', () => {
  const facts = (over: Partial<SelfPlayFacts>): SelfPlayFacts => ({
    proposer: { rewardSum: 3, rewardCount: 12 },
    solver: { rewardSum: 0, rewardCount: 0 },
    proposals: 12,
    made: 10,
    repeated: 0,
    known: 0,
    invalid: 2,
    malformed: 0,
    setAside: 0,
    successes: 16,
    trials: 80,
    kept: 10,
    source: null,
    ...over,
  });
  const labels = {
    tasks: 10,
    tooFew: 0,
    undecided: 0,
    tooHard: 0,
    tooEasy: 0,
    learnt: 10,
    shareSum: 6,
    right: 10,
    checked: 10,
    agreed: 60,
    votes: 80,
  };
  const meets = { solver: { proposer: { stage: NAMES } }, proposer: { solver: { stage: NAMES } } };

  test.each<[string, 'solver' | 'proposer', Partial<SelfPlayFacts>, number | null]>([
    ['a solver is the part of its samples that succeed', 'solver', {}, 0.2],
    ['a solver goes by votes where these are the labels', 'solver', { labels }, 0.75],
    ['a solver whose opponent makes no new task is all', 'solver', { made: 0, trials: 0, successes: 0 }, 1],
    ['a solver that nobody could judge is not known', 'solver', { trials: 0, successes: 0 }, null],
    ['a solver whose proposals nobody could check', 'solver', { invalid: 0, made: 0, trials: 0 }, null],
    ['a proposer is its mean reward', 'proposer', {}, 0.25],
    ['a proposer is no less than 0', 'proposer', { proposer: { rewardSum: -9, rewardCount: 12 } }, 0],
    [
      'a proposer whose rewards are unknown',
      'proposer',
      { proposer: { rewardSum: 0, rewardCount: 0 } },
      null,
    ],
  ])('of %s', (_, role, over, score) => {
    expect(scoreOf(meets[role], facts(over))).toBe(score);
  });

  test('that is not known leaves the record as it is, a step older', () => {
    expect(recordMeeting({ even: { score: 1, steps: 2 } }, 'hard', null)).toEqual({
      even: { score: 0.9, steps: 1.8 },
    });
  });
});
