import { expect, test } from 'vitest';
import { metricsTable } from '../../../../cli/metrics/table.ts';
import { figuresOf } from '../../../../core/training/figures.ts';
import type { RlStageSpec } from '../../../../core/schema/stages/rl.ts';
import type { StepFacts } from '../../../../core/training/step-facts.ts';
import { trainStage } from '../../../../core/training/stage.ts';
import { go, ScriptedTraining, stageInput } from '../../core/training/scripted-training.ts';

test('what was not measured is a dash and no figure, and a measured 0 is a 0', async () => {
  const ports = new ScriptedTraining({ heldOut: [0.5] });
  await trainStage(ports, stageInput({ maxSteps: 1 }), null, go);
  const [facts] = ports.facts as [StepFacts];
  const learner = { ...facts.learner!, kl: null, clipFraction: 0, gradientNorm: null };
  const rollout = { ...facts.rollout!, sampledTokens: 0, sampledLogprob: 0 };
  const step = { ...facts, learner, rollout, answer: null };
  const [heads, cells] = metricsTable([step], null)
    .split('\n')
    .map((line) => line.split('\t'));
  const shown = Object.fromEntries(heads!.map((head, i) => [head, cells![i]]));
  expect(shown).toMatchObject({
    KL: '–',
    '|gradient|': '–',
    entropy: '–',
    tokens: '–',
    'clipped %': '0.0',
  });
  const figures = figuresOf(step);
  for (const name of ['learner/kl', 'learner/gradient-norm', 'policy/entropy', 'episodes/tokens'])
    expect(figures).not.toHaveProperty([name]);
  expect(figures).toHaveProperty(['learner/clip-fraction'], 0);
});

test('a terminal of 80 columns shows the figures that matter most, and names the others', async () => {
  const ports = new ScriptedTraining({ heldOut: [0.5] });
  await trainStage(ports, stageInput({ maxSteps: 1 }), null, go);
  const shown = metricsTable([{ ...ports.facts[0]!, answer: null }], 80).split('\n');
  const table = shown.filter((line) => /^[┌│└├]/u.test(line));
  expect(Math.max(...table.map((line) => line.length))).toBeLessThanOrEqual(80);
  for (const head of ['step', 'reward', 'held-out %', 'entropy']) expect(table.join('\n')).toContain(head);
  expect(shown.join('\n')).toMatch(/no room for turns, gap/u);
});

test('success with hints is a column where there were any', async () => {
  const ports = new ScriptedTraining({ heldOut: [0.5] });
  await trainStage(ports, stageInput({ maxSteps: 1 }), null, go);
  const [facts] = ports.facts as [StepFacts];
  const step = { ...facts, answer: null };
  const hinted = { ...step, rollout: { ...facts.rollout!, hinted: { successes: 1, trials: 8 } } };
  const rows = (steps: Parameters<typeof metricsTable>[0]) =>
    metricsTable(steps, null)
      .split('\n')
      .map((line) => line.split('\t'));
  const [heads, first, second] = rows([step, hinted]);
  const column = heads!.indexOf('with hint %');
  expect([first![column], second![column]]).toEqual(['–', '12.5']);
  expect(rows([step])[0]).not.toContain('with hint %');
});

test('a stage that samples ahead has columns of its own', async () => {
  const headsOf = async (collect: RlStageSpec['collect']) => {
    const ports = new ScriptedTraining({ heldOut: [0.5] });
    await trainStage(ports, stageInput({ maxSteps: 3, collect }), null, go);
    const table = metricsTable(
      ports.facts.map((facts) => ({ ...facts, answer: null })),
      null,
    );
    const [heads, ...rows] = table.split('\n').map((line) => line.split('\t'));
    return { heads: heads!, stale: rows.slice(0, 3).map((cells) => cells[heads!.indexOf('stale')]) };
  };
  expect((await headsOf({ kind: 'on-policy' })).heads).not.toContain('stale');
  const { heads, stale } = await headsOf({ kind: 'pipelined', lag: 1 });
  expect(heads).toEqual(expect.arrayContaining(['stale', 'idle s']));
  expect(stale).toEqual(['0.0', '1.0', '1.0']);
});
