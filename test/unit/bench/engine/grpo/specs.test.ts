import { afterEach, expect, test, vi } from 'vitest';
import { parseSpec } from '../../../../../spec/parse-spec.ts';
import {
  dumpTasks,
  grpoSettings,
  rlSpec,
  stageOf,
  warmStartSpec,
} from '../../../../../bench/engine/grpo/specs.ts';
import {
  evaluateExpression,
  parseExpression,
} from '../../../../../environments/families/calculator/expression.ts';
import { splitOf } from '../../../../../environments/families/calculator/problems.ts';
import { loadEnvironments } from '../../../../../environments/families/index.ts';

const environments = await loadEnvironments([]);
afterEach(() => vi.unstubAllEnvs());

test.each([true, false])(
  'both specs are legal, and RL needs no decision of a person (quick: %s)',
  (quick) => {
    const { stages } = parseSpec(warmStartSpec(quick), 'warm', environments);
    expect(stages.map(({ kind }) => kind)).toEqual(['supervised', 'rl']);
    const spec = parseSpec(rlSpec(quick, 'warm', 20, 5), 'bench', environments);
    expect(spec).toMatchObject({
      model: { kind: 'from', run: 'warm' },
      retention: { keepEvery: 5 },
    });
    // It measures itself once, after the last step that counts.
    expect(spec.stages).toHaveLength(1);
    expect(spec.stages[0]).toMatchObject({ maxSteps: 21, graduation: { everySteps: 21 }, retryFailures: 0 });
  },
);

test('dumped tasks are the training tasks of each step, of every level, with their right answers', () => {
  const spec = parseSpec(rlSpec(false, 'warm', 20, 5), 'bench', environments);
  const dumped = dumpTasks(spec, stageOf(spec), 20, environments);
  expect(dumped).toHaveLength(20 * 64);
  for (const level of [1, 2, 3]) {
    const share = dumped.filter((task) => task.level === level).length / dumped.length;
    expect(share).toBeGreaterThan(0.25);
  }
  const bare = dumped.filter(({ prompt }) => /^[\d+*-]+$/.test(prompt));
  expect(bare.length).toBeGreaterThan(400);
  for (const { prompt, answer } of bare) {
    expect(splitOf(prompt)).toBe('train');
    expect(answer).toBe(String(evaluateExpression(parseExpression(prompt))));
  }
  // More steps begin with the same ones, and bring others.
  const more = dumpTasks(spec, stageOf(spec), 21, environments);
  expect(more.slice(0, dumped.length)).toEqual(dumped);
  expect(more.slice(dumped.length)).not.toEqual(dumped.slice(0, 64));
});

test('target and bound can be chosen, and what is no number is refused', () => {
  vi.stubEnv('GRADUS_BENCH_GRPO_TARGET', '0.85');
  vi.stubEnv('GRADUS_BENCH_GRPO_BOUND', '4');
  expect(grpoSettings(false)).toMatchObject({ target: 0.85, bound: 4 });
  vi.stubEnv('GRADUS_BENCH_GRPO_BOUND', 'six');
  expect(() => grpoSettings(false)).toThrow(/GRADUS_BENCH_GRPO_BOUND is "six"/);
});
