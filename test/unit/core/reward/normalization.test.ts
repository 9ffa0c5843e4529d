import { expect, test } from 'vitest';
import type { Episode, RolloutGroup } from '../../../../core/episode/episode.ts';
import type { Outcome } from '../../../../core/episode/outcome.ts';
import { NO_SCALE, rewardScales, scaledOutcome } from '../../../../core/reward/normalization.ts';

const scored = (reward: number): Outcome => ({ kind: 'scored', reward, components: [] });
const cut = (reward: number): Outcome => ({ kind: 'truncated', limit: 'tokens', reward, components: [] });
const failed: Outcome = { kind: 'failed', boundary: 'infra', reason: 'gone' };

function group(...byEnvironment: [environment: string, outcomes: Outcome[]][]): RolloutGroup {
  return {
    id: 'g',
    weights: 'w',
    temperature: 1,
    tasks: byEnvironment.map(([environment], index) => ({
      ref: { environment, split: 'train', level: 1, index },
      prompt: '',
      promptTokens: [],
    })),
    episodes: byEnvironment.flatMap(([, outcomes], task) =>
      outcomes.map((outcome, sample): Episode => ({
        sample,
        task,
        tokens: [],
        mask: [],
        samplerLogprobs: [],
        turns: [],
        status: { kind: 'answered', answer: '' },
        outcome,
      })),
    ),
  };
}

test('the rewards of each environment get mean 0 and deviation 1 over the step', () => {
  const groups = [
    group(['code', [scored(100), scored(300)]], ['maths', [scored(0), scored(1)]]),
    group(['code', [scored(200), scored(400)]], ['maths', [scored(0), scored(1), failed]]),
  ];
  const scales = rewardScales(groups, 'train');
  expect(scales.map(({ environment, episodes, mean }) => [environment, episodes, mean])).toEqual([
    ['code', 4, 250],
    ['maths', 4, 0.5],
  ]);
  for (const [environment, rewards] of [
    ['code', [100, 300, 200, 400]],
    ['maths', [0, 1, 0, 1]],
  ] as const) {
    const scale = scales.find((one) => one.environment === environment)!;
    const all = rewards.map((reward) => scaledOutcome(scored(reward), 'train', scale)!);
    expect(all.reduce((a, b) => a + b)).toBeCloseTo(0, 12);
    expect(all.reduce((sum, r) => sum + r * r, 0) / (all.length - 1)).toBeCloseTo(1, 12);
  }
});

test('what has no reward is in no scale and gets none', () => {
  const [scale, ...others] = rewardScales([group(['maths', [scored(1), failed, cut(9)]])], 'mask');
  expect(others).toEqual([]);
  expect(scale).toEqual({ environment: 'maths', episodes: 1, mean: 1, deviation: 1 });
  expect(scaledOutcome(failed, 'train', scale!)).toBeNull();
  expect(scaledOutcome(cut(9), 'mask', scale!)).toBeNull();
});

test('rewards that are all equal are not blown up', () => {
  const [scale] = rewardScales([group(['maths', [scored(0.1), scored(0.1), scored(0.1)]])], 'train');
  expect(Math.abs(scaledOutcome(scored(0.1), 'train', scale!)!)).toBeLessThan(1e-12);
});

test('the order of episodes and groups changes not even the rounding', () => {
  const rewards = [0.1, 0.7, 0.3, 1e-9, 12.5, 0.2];
  const one = rewardScales([group(['a', rewards.map(scored)])], 'train');
  const other = rewardScales(
    rewards.toReversed().map((reward) => group(['a', [scored(reward)]])),
    'train',
  );
  expect(other).toEqual(one);
});

test('without a scale rewards are as they are', () => {
  expect(scaledOutcome(scored(3), 'train', NO_SCALE)).toBe(3);
});
