import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { alarmsOf } from './stages.ts';
import type { Told } from './stages.ts';

// Real trainings, recorded: test/fixtures/step-facts/README.md says which.

const stageFrom = (file: string): Told[] =>
  JSON.parse(readFileSync(path.join('test/fixtures/step-facts', `${file}.json`), 'utf8')) as Told[];

const rewardOf = ({ rollout }: Told): number => rollout!.rewardSum / rollout!.rewardCount;
const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

test.each(['calculator-levels-1-3', 'calculator-levels-1-3-fine', 'calculator-seed-7', 'words'])(
  '%s, a healthy stage, raises no alarm',
  (file) => {
    const stage = stageFrom(file);
    expect(stage.length).toBeGreaterThanOrEqual(60);
    expect(alarmsOf(stage)).toEqual([]);
  },
);

test('the molecules, which end on two dozen of them, are in the echo trap, and their reward has not fallen', () => {
  const stage = stageFrom('molecules');
  const alarms = alarmsOf(stage);
  expect(alarms.map(({ name, stageStep }) => [name, stageStep])).toEqual([['echo-trap', 55]]);
  // Variance, entropy, gradients and repetition all speak.
  expect(alarms[0]!.evidence).toHaveLength(4);
  const rewards = stage.map(rewardOf);
  expect(mean(rewards.slice(47, 55))).toBeGreaterThan(mean(rewards.slice(31, 39)));
});

test('a learner that is taught what tools said is found out at its third step', () => {
  const [alarm] = alarmsOf(stageFrom('missing-mask'));
  expect(alarm).toMatchObject({ name: 'missing-mask', stageStep: 3 });
  expect(alarm!.evidence[0]!.now).toBeGreaterThan(1);
});
