import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { total } from '../../../../core/training/stage-policy.ts';
import { alarmsOf } from './stages.ts';
import type { Told } from './stages.ts';

// Real trainings, recorded: test/fixtures/step-facts/README.md says which.

const stageFrom = (file: string): Told[] =>
  JSON.parse(readFileSync(path.join('test/fixtures/step-facts', `${file}.json`), 'utf8')) as Told[];

const rewardOf = ({ rollout }: Told): number => rollout!.rewardSum / rollout!.rewardCount;
const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

test.each([
  'calculator-levels-1-3',
  'calculator-levels-1-3-fine',
  'calculator-seed-7',
  'words',
  'retail',
  'web-shop',
])('%s, a healthy stage, raises no alarm', (file) => {
  const stage = stageFrom(file);
  expect(stage.length).toBeGreaterThanOrEqual(60);
  expect(alarmsOf(stage)).toEqual([]);
});

test('gspo, whose held-out success is low at one look of a restless but healthy stage, raises no alarm', () => {
  expect(alarmsOf(stageFrom('gspo'), { clipsSequences: true, look: { left: 1, looks: 6 } })).toEqual([]);
});

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

test.each([
  ['pays for length', 'pays-length', 'length-explosion', 41],
  ['pays for haste', 'pays-haste', 'reward-hacking', 22],
  ['says the same of everything', 'blind', 'no-contrast', 5],
])('a verifier that %s is named by what the policy makes of it', (_, file, name, step) => {
  const named = alarmsOf(stageFrom(file)).filter((alarm) => alarm.name === name);
  expect(named[0]?.stageStep).toBe(step);
});

test('length is named before success has gone', () => {
  const success = stageFrom('pays-length').map(({ rollout }) => {
    const { successes, trials } = total(rollout!.arms);
    return successes / trials;
  });
  expect(mean(success.slice(38, 41))).toBeGreaterThan(0.3);
  expect(mean(success.slice(45, 48))).toBeLessThan(0.1);
});

test('a learning rate that is far too high is named at its fifth step', () => {
  const [alarm] = alarmsOf(stageFrom('rate'));
  expect(alarm).toMatchObject({ name: 'kl-blow-up', stageStep: 5 });
});

test('a web shop whose policy was hardly warmed up, and ends none of its episodes, is named at its eighth step', () => {
  const alarms = alarmsOf(stageFrom('web-shop-unready'));
  expect(alarms.map(({ name, stageStep }) => [name, stageStep])).toEqual([['truncation', 8]]);
});
