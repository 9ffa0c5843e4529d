import { expect, test } from 'vitest';
import { tally } from '../../../../activities/verification/tally.ts';
import type { Outcome } from '../../../../core/episode/outcome.ts';
import type { RewardSpec } from '../../../../core/schema/reward.ts';

const reward: RewardSpec = {
  components: [{ verifier: 'right', role: 'outcome', weight: 1, gatedBy: null }],
  truncated: 'train',
};
const judged = (score: number): Outcome => ({
  kind: 'scored',
  reward: score,
  components: [{ verifier: 'right', version: '1', score, contribution: score }],
});
const tasks = [1, 2, 3].map((index) => ({
  ref: { environment: 'e', split: 'train' as const, level: 1, index },
  prompt: 'p',
  promptTokens: [1],
}));
/** Of four samples of each task so many are right. */
const episodes = (right: readonly number[]) =>
  right.flatMap((count, task) =>
    [0, 1, 2, 3].map((sample) => ({
      task,
      sample,
      tokens: [1, 2],
      mask: [1, 0] as (0 | 1)[],
      samplerLogprobs: [-0.5, 0],
      turns: [],
      status: { kind: 'answered' as const, answer: 'x' },
      outcome: judged(sample < count ? 1 : 0),
    })),
  );

test('a call that makes its tool fail is no place to hide from what is measured, and others’ failures are nobody’s', async () => {
  const [first, ...others] = episodes([4, 4, 4]);
  const failedAt = (boundary: 'tool' | 'infra' | 'environment') => ({
    id: 'g',
    weights: 'w',
    temperature: 1,
    tasks,
    episodes: [{ ...first!, outcome: { kind: 'failed' as const, boundary, reason: 'x' } }, ...others],
  });
  const arm = { environment: 'e', level: 1 };
  expect(await tally(reward, failedAt('tool'))).toMatchObject({
    arms: [{ arm, successes: 11, trials: 12, toolFailures: 1 }],
    outcomes: { scored: 11, failed: 1 },
    rewardCount: 11,
  });
  expect((await tally(reward, failedAt('infra'))).arms).toEqual([{ arm, successes: 11, trials: 11 }]);
  expect((await tally(reward, failedAt('environment'))).arms).toEqual([{ arm, successes: 11, trials: 11 }]);
  const broken = failedAt('environment');
  const [session, ...rest] = broken.episodes;
  const acted = { ...session!, outcome: { ...session!.outcome, acted: true as const } } as typeof first;
  expect(await tally(reward, { ...broken, episodes: [acted!, ...rest] })).toMatchObject({
    arms: [{ arm, successes: 11, trials: 12, toolFailures: 1 }],
  });
});

test('an arm is judged by tasks that were drawn for the first time, not by those that were chosen for being failed', async () => {
  const fresh = { id: 'g', weights: 'w', temperature: 1, tasks, episodes: episodes([0, 3, 4]) };
  const group = {
    ...fresh,
    tasks: tasks.map((task, i) => (i === 0 ? { ...task, retried: true as const } : task)),
  };
  const arm = { environment: 'e', level: 1 };
  expect((await tally(reward, fresh)).arms).toEqual([{ arm, successes: 7, trials: 12 }]);
  expect((await tally(reward, group)).arms).toEqual([{ arm, successes: 7, trials: 8 }]);
  // All else counts as ever, and a task that failed again may be tried again.
  const { arms: _, ...others } = await tally(reward, group);
  const { arms: __, ...expected } = await tally(reward, fresh);
  expect(others).toEqual(expected);
  expect(others).toMatchObject({
    rewardCount: 12,
    sampledTokens: 12,
    sampledLogprob: -6,
    tried: [
      { ...tasks[0]!.ref, successes: 0, trials: 4 },
      { ...tasks[1]!.ref, successes: 3, trials: 4 },
    ],
  });
});

test('a tool that fails in a task that is tried again is no failure of the arm, of which the task is no trial', async () => {
  const [first, ...others] = episodes([0, 4, 4]);
  const failed = { kind: 'failed' as const, boundary: 'tool' as const, reason: 'x' };
  const again = {
    id: 'g',
    weights: 'w',
    temperature: 1,
    // The arm is known already when the task that is tried again fails.
    tasks: tasks.map((task, i) => (i === 0 ? { ...task, retried: true as const } : task)),
    episodes: [...others, { ...first!, outcome: failed }],
  };
  const arm = { environment: 'e', level: 1 };
  expect((await tally(reward, again)).arms).toEqual([{ arm, successes: 8, trials: 8 }]);
});

test('tokens are counted by the weights that sampled them, where turns have others than their group', async () => {
  const turn = (start: number, end: number, weights?: string) => ({
    start,
    end,
    text: '',
    action: { kind: 'answer' as const, answer: '' },
    ...(weights !== undefined && { weights }),
  });
  const [first, second, ...others] = episodes([4, 4, 4]);
  const long = {
    tokens: [1, 2, 3, 4, 5],
    mask: [1, 1, 0, 1, 1] as (0 | 1)[],
    samplerLogprobs: [0, 0, 0, 0, 0],
  };
  const group = {
    id: 'g',
    weights: 'w',
    temperature: 1,
    tasks,
    episodes: [
      { ...first!, ...long, turns: [turn(0, 2), turn(3, 5, 'newer')] },
      { ...second!, ...long, turns: [turn(0, 2, 'newer'), turn(3, 4, 'newer'), turn(4, 5, 'newest')] },
      ...others,
    ],
  };
  expect(await tally(reward, group)).toMatchObject({
    sampledTokens: 4 + 4 + others.length,
    sampledBy: [
      { weights: 'newer', tokens: 2 + 3 },
      { weights: 'newest', tokens: 1 },
    ],
  });
  expect(await tally(reward, { ...group, episodes: others })).not.toHaveProperty('sampledBy');
});
