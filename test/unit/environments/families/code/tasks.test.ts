import { describe, expect, test, vi } from 'vitest';
import type { Split } from '../../../../../core/refs.ts';
import { RandomStream } from '../../../../../core/random.ts';
import { codeEnvironment } from '../../../../../environments/families/code/environment.ts';
import { codeTask, LEVELS } from '../../../../../environments/families/code/levels.ts';
import { someNumbers } from '../../../../../environments/families/code/numbers.ts';
import { isSame, textOf } from '../../../../../environments/families/code/problem.ts';

const SPLITS: Split[] = ['train', 'heldout', 'test'];
const levels = LEVELS.map(({ level }) => level);
const at = (split: Split, level: number, index: number) =>
  codeTask({ environment: 'code', split, level, index });
const TASKS = 120;

describe.each(levels)('tasks of level %i', (level) => {
  const tasks = SPLITS.flatMap((split) =>
    Array.from({ length: TASKS }, (_, index) => at(split, level, index)),
  );

  test('have hidden tests with other arguments than the examples, and what the solution gives for each', () => {
    for (const { hidden, visible, problem } of tasks) {
      const given = [...visible, ...hidden].map((one) => textOf(one.given));
      expect(new Set(given).size).toBe(given.length);
      for (const one of [...visible, ...hidden]) expect(problem.of(one.given)).toEqual(one.want);
    }
  });

  test('tell the solution from each near miss', () => {
    for (const { hidden, problem } of tasks) {
      expect(problem.misses.length).toBeGreaterThan(1);
      for (const { code, of } of problem.misses) {
        const isRight = hidden.every(({ given, want }) => {
          const value = of(given);
          return value !== undefined && isSame(value, want);
        });
        expect(isRight, `${code} for ${problem.code}`).toBe(false);
      }
    }
  });

  test('let no constant pass more than half of the hidden tests', () => {
    for (const { hidden, problem } of tasks) {
      for (const { want } of hidden) {
        const passing = hidden.filter((other) => isSame(other.want, want));
        expect(passing.length, problem.code).toBeLessThanOrEqual(hidden.length / 2);
      }
    }
  });
});

test('no function of one split is one of another, at any level and however it is written', () => {
  const numbers = someNumbers([300]);
  const owner = new Map<string, Split>();
  const codes = new Map<string, Set<string>>();
  for (const split of SPLITS) {
    for (const level of levels) {
      for (let index = 0; index < TASKS; index++) {
        const { problem } = at(split, level, index);
        const isOfNumbers = level <= 2;
        const does = isOfNumbers ? numbers.map((x) => problem.of(x)).join() : problem.code;
        if ((owner.get(does) ?? split) !== split)
          expect.fail(`${problem.code} is in ${owner.get(does)} and ${split}`);
        owner.set(does, split);
        if (isOfNumbers) codes.set(does, (codes.get(does) ?? new Set()).add(problem.code));
      }
    }
  }
  // Some were written in two ways, so that the first expectation says more than that programs differ.
  expect([...codes.values()].some(({ size }) => size > 1)).toBe(true);
});

test('a task is a function of its coordinates', async () => {
  const first = levels.map((level) => at('train', level, 7));
  vi.resetModules();
  const anew = await import('../../../../../environments/families/code/levels.ts');
  for (const { prompt, hidden, problem } of first) {
    const level = levels[first.findIndex((task) => task.prompt === prompt)]!;
    const again = anew.codeTask({ environment: 'code', split: 'train', level, index: 7 });
    expect(again.hidden).not.toBe(hidden);
    expect(again).toMatchObject({ prompt, hidden, problem: { code: problem.code } });
  }
});

test('neither a hidden test nor the solution is in a task', async () => {
  const environment = codeEnvironment();
  const random = new RandomStream('test');
  for (const level of levels) {
    const ref = { environment: 'code', split: 'train' as const, level, index: random.int(0, 99) };
    const told = JSON.stringify(await environment.task(ref));
    const { problem, hidden } = codeTask(ref);
    expect(told).not.toContain(problem.code);
    for (const { given } of hidden.filter(({ given }) => textOf(given).length > 6))
      expect(told).not.toContain(JSON.stringify(`f(${textOf(given)})`).slice(1, -1));
  }
});
