import { describe, expect, test } from 'vitest';
import { howSolvedOf } from '../../../../activities/verification/how-solved.ts';
import { tally } from '../../../../activities/verification/tally.ts';
import type { Episode, EpisodeStatus, RolloutGroup, Turn } from '../../../../core/episode/episode.ts';
import type { Outcome } from '../../../../core/episode/outcome.ts';
import type { Split } from '../../../../core/refs.ts';
import { reward } from '../../core/training/scripted-training.ts';

const outcome = (score: number): Outcome => ({
  kind: 'scored',
  reward: score,
  components: [{ verifier: 'exact-match', version: '1', score, contribution: score }],
});

type Said = Pick<Turn, 'action' | 'observation'>;

const call = (number: number, error?: 'unknown-tool' | 'invalid-arguments' | 'tool-error'): Said => ({
  action: { kind: 'call', call: { name: 'add', arguments: { number } } },
  observation: { text: 'x', ...(error && { error }) },
});
const malformed: Said = {
  action: { kind: 'malformed', reason: 'no call' },
  observation: { text: 'error: no call', error: 'malformed-call' },
};
const answer: Said = { action: { kind: 'answer', answer: 'x' } };

/** Three sampled tokens a turn, and one that was observed. */
const episode = (
  task: number,
  sample: number,
  said: Said[],
  judged: Outcome,
  status: EpisodeStatus = { kind: 'answered', answer: 'x' },
): Episode => ({
  task,
  sample,
  tokens: said.flatMap(() => [1, 2, 3, 4]),
  mask: said.flatMap(() => [1, 1, 1, 0] as const),
  samplerLogprobs: said.flatMap(() => [0, 0, 0, 0]),
  turns: said.map((turn, i) => ({ ...turn, text: String(i), start: 4 * i, end: 4 * i + 3 })),
  status,
  outcome: judged,
});

const group = (episodes: Episode[], levels: number[], split: Split = 'test'): RolloutGroup => ({
  id: 'g',
  weights: 'w',
  temperature: 1,
  tasks: levels.map((level, index) => ({
    ref: { environment: 'calculator', split, level, index },
    prompt: 'p',
    promptTokens: [1],
  })),
  episodes,
});

describe('how tasks were gone about', () => {
  test('an episode that its environment ends kept to the form, if every turn of it did', () => {
    const ended: EpisodeStatus = { kind: 'ended' };
    const episodes = [
      episode(0, 0, [call(1), call(2)], outcome(1), ended),
      episode(0, 1, [malformed, call(2)], outcome(1), ended),
    ];
    expect(howSolvedOf(reward, group(episodes, [1]))).toMatchObject([{ episodes: 2, compliant: 1 }]);
  });

  test('is counted by level, over the episodes of which success can be told', () => {
    const episodes = [
      // Solved after an error, with two different calls.
      episode(0, 0, [call(1, 'tool-error'), call(2), answer], outcome(1)),
      // Failed: the same call twice is no second step.
      episode(0, 1, [call(1), call(1), answer], outcome(0)),
      // Not judged: nothing is told of it.
      episode(0, 2, [call(1), answer], { kind: 'abstained', reason: 'r' }),
      // Solved at once, on the other level.
      episode(1, 0, [answer], outcome(1)),
      // Cut off after a malformed turn.
      episode(1, 1, [malformed], { ...outcome(0), kind: 'truncated', limit: 'turns' } as Outcome, {
        kind: 'truncated',
        limit: 'turns',
      }),
    ];
    const [first, second] = howSolvedOf(reward, group(episodes, [1, 2]));
    expect(first).toEqual({
      arm: { environment: 'calculator', level: 1 },
      episodes: 2,
      solved: 1,
      solvedTurns: 3,
      solvedCalls: 2,
      solvedTokens: 9,
      tokens: 18,
      compliant: 2,
      calls: 4,
      goodCalls: 3,
      unknownTools: 0,
      multiStep: 1,
      multiStepSolved: 1,
      erred: 1,
      recovered: 1,
      tries: { '1/2': 1 },
    });
    expect(second).toMatchObject({
      arm: { level: 2 },
      episodes: 2,
      solved: 1,
      compliant: 1,
      erred: 1,
      recovered: 0,
    });
    expect(second!.tries).toEqual({ '1/2': 1 });
  });

  test('a malformed turn is no compliance, also where the task is solved', () => {
    const [howSolved] = howSolvedOf(reward, group([episode(0, 0, [malformed, answer], outcome(1))], [1]));
    expect(howSolved).toMatchObject({ solved: 1, compliant: 0, erred: 1, recovered: 1 });
  });

  test('a task of which nothing can be told has had no tries', () => {
    const [howSolved] = howSolvedOf(
      reward,
      group([episode(0, 0, [answer], { kind: 'abstained', reason: 'r' })], [1]),
    );
    expect(howSolved).toMatchObject({ episodes: 0, tries: {} });
  });

  test('is told where a group measures, not where it is trained on', async () => {
    const episodes = [episode(0, 0, [answer], outcome(1))];
    expect((await tally(reward, group(episodes, [1], 'heldout'))).conduct).toHaveLength(1);
    expect(await tally(reward, group(episodes, [1], 'train'))).not.toHaveProperty('conduct');
  });
});

test('each call of a turn with several counts, and each error of one', () => {
  const said: Said & Pick<Turn, 'results'> = {
    action: {
      kind: 'calls',
      calls: [1, 2].map((number) => ({ name: 'add', arguments: { number } })),
    },
    observation: { text: 'x\nx', error: 'unknown-tool' },
    results: [{ text: 'x' }, { text: 'x', error: 'unknown-tool' }],
  };
  const [solved] = howSolvedOf(reward, group([episode(0, 0, [said, answer], outcome(1))], [1]));
  expect(solved).toMatchObject({
    calls: 2,
    goodCalls: 1,
    unknownTools: 1,
    multiStep: 1,
    erred: 1,
    solvedCalls: 2,
    solvedTurns: 2,
  });
});
