import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RandomStream } from '../../../../core/random.ts';
import type { RlStageSpec } from '../../../../core/schema/stages/rl.ts';
import type { LeagueDraw } from '../../../../core/schema/stages/earlier-policy.ts';
import {
  drawOpponent,
  leagueAfter,
  recordMeeting,
  scoreAgainst,
  scoreOf,
} from '../../../../core/training/league.ts';
import type { LeagueRecord } from '../../../../core/training/league.ts';
import type { Solved, StepProposal } from '../../../../core/training/proposals.ts';
import type { Score } from '../../../../core/training/step-facts.ts';

const NAMES = ['easy', 'even', 'hard'];
const OPPONENTS = NAMES.map((stage) => ({ stage }));
/** A solver's league that is drawn so. */
const drawn = (draw?: LeagueDraw) => ({ proposer: { stage: NAMES, ...(draw && { draw }) } });

/** How often each is met, as parts of all draws. */
function metOf(draw: LeagueDraw | undefined, league: LeagueRecord, draws = 20_000): number[] {
  const met = NAMES.map(() => 0);
  for (let step = 0; step < draws; step++)
    met[
      OPPONENTS.indexOf(drawOpponent(OPPONENTS, drawn(draw), league, new RandomStream(1, 'opponent', step)))
    ]!++;
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
    expect(drawOpponent(OPPONENTS, drawn(), league, new RandomStream(1, 'opponent', 7))).toBe(
      OPPONENTS[first],
    );
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
            (before, [name, score]) => recordMeeting(before, name, score, NAMES.length),
            {},
          );
          // What is left of meetings adds up to 1 / (1 - 0.9^(1/3)) steps at most.
          const most = 1 / (1 - 0.9 ** (1 / 3));
          for (const name of NAMES) {
            expect(scoreAgainst(record[name])).toBeGreaterThanOrEqual(0.5 / (most + 1) - 1e-9);
            expect(scoreAgainst(record[name])).toBeLessThanOrEqual((most + 0.5) / (most + 1) + 1e-9);
          }
        },
      ),
    );
  });

  test('that becomes easy is met less, and looked at again in time', () => {
    let record: LeagueRecord = {};
    for (let i = 0; i < 30; i++) record = recordMeeting(record, 'easy', 1, 3);
    const weight = (): number => (1 - scoreAgainst(record['easy'])) ** 2;
    const mastered = weight();
    expect(mastered).toBeLessThan(0.003);
    for (let i = 0; i < 90; i++) record = recordMeeting(record, 'hard', 0, 3);
    expect(weight()).toBeGreaterThan(30 * mastered);
  });

  /** The part of steps that meet the one opponent of a league which is not mastered. */
  function metAmong(opponents: number, draw: LeagueDraw, score: number, steps = 30_000): number {
    const all = Array.from({ length: opponents }, (_, i) => ({ stage: `opponent-${i}` }));
    let record: LeagueRecord = {};
    let met = 0;
    for (let step = 0; step < steps; step++) {
      const one = drawOpponent(all, drawn(draw), record, new RandomStream(3, 'opponent', step));
      if (one === all[0]) met++;
      record = recordMeeting(record, one.stage, one === all[0] ? score : 1, opponents);
    }
    return met / steps;
  }

  test.each([
    [2, 0.9, 0.6],
    [8, 0.7, 0.3],
    [64, 0.4, 0.05],
  ])('of %d of which all others are mastered is met most', (opponents, hard, variance) => {
    expect(metAmong(opponents, 'hard', 0.2)).toBeGreaterThan(hard);
    expect(metAmong(opponents, 'variance', 0.5)).toBeGreaterThan(variance);
  });
});

describe('the score of a step', () => {
  const made = (task: number): StepProposal => ({ kind: 'made', task, first: true, like: `like-${task}` });
  const invalid: StepProposal = { kind: 'invalid', reason: 'no program' };
  const unjudged: StepProposal = { kind: 'unjudged' };
  const solver = { proposer: { stage: NAMES, draw: 'hard' as const }, learnability: 'r-zero' as const };
  const proposer = { solver: { stage: NAMES, draw: 'hard' as const }, learnability: 'r-zero' as const };
  const tasks = [
    { successes: 2, trials: 8 },
    { successes: 4, trials: 8 },
  ];
  const nobody = [{ successes: 0, trials: 0 }];
  const UNKNOWN = { sum: 0, count: 0 };
  const STAGE = { kind: 'rl', selfPlay: solver } as RlStageSpec;

  test.each<[string, object, StepProposal[], Solved[], Score]>([
    [
      'a solver is the part of its samples that succeed',
      solver,
      [made(0), made(1), invalid],
      tasks,
      { sum: 6, count: 16 },
    ],
    [
      'a solver whose opponent makes no new task is all',
      solver,
      [invalid, { kind: 'known' }],
      [],
      { sum: 1, count: 1 },
    ],
    ['a solver that nobody could judge is not known', solver, [made(0), invalid], nobody, UNKNOWN],
    ['a solver whose proposals nobody could check is not known', solver, [unjudged, invalid], [], UNKNOWN],
    ['a solver without proposals is not known', solver, [], [], UNKNOWN],
    [
      'a proposer is what there is to learn from its tasks',
      proposer,
      [made(0), made(1), invalid],
      tasks,
      { sum: 1.5, count: 2 },
    ],
    ['a proposer whose solver did nothing is not known', proposer, [made(0), invalid], nobody, UNKNOWN],
    ['a proposer that made no task is not known', proposer, [invalid, invalid], [], UNKNOWN],
  ])('of %s', (_, how, proposals, solved, score) => {
    expect(scoreOf(how as typeof solver, proposals, solved)).toEqual(score);
  });

  test('is not told where opponents are drawn alike', () => {
    expect(scoreOf({ ...solver, proposer: { stage: NAMES } }, [made(0)], tasks)).toBeUndefined();
    expect(leagueAfter(STAGE, {}, { opponent: 'even' } as never)).toEqual({});
  });

  test('that is not known leaves the record as it is, a step older', () => {
    const facts = { opponent: 'hard', score: { sum: 0, count: 0 } } as never;
    const before = { league: { even: { score: 1, steps: 2 } } };
    const left = 0.9 ** (1 / 3);
    const after = leagueAfter(STAGE, before, facts);
    expect(after.league).toEqual({ even: { score: left, steps: 2 * left } });
  });

  test('goes into the record of who was met', () => {
    const facts = { opponent: 'hard', score: { sum: 6, count: 16 } } as never;
    expect(leagueAfter(STAGE, {}, facts)).toEqual({
      league: { hard: { score: 0.375, steps: 1 } },
    });
  });
});
