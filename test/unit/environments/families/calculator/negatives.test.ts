import { describe, expect, test } from 'vitest';
import { calculatorNegativesEnvironment } from '../../../../../environments/families/calculator/negatives.ts';
import { SPLITS } from '../../../../support/ready-environments.ts';

const environment = calculatorNegativesEnvironment();
const at = (level: number, index = 0, split: 'train' | 'test' = 'train') =>
  environment.task({ environment: environment.name, split, level, index });
const namesOf = (level: number): string[] => (at(level).tools ?? environment.tools).map(({ name }) => name);

describe('negatives', () => {
  test('are the four cases of a tool that is given or not, and asked for or not', () => {
    const [compute] = at(1).prompt.match(/^Compute \d+[-+*]\d+\.$/u) ?? [];
    expect(compute).toBeDefined();
    const repeat = compute!.replace('Compute', 'Repeat');
    expect([1, 2, 3, 4].map((level) => at(level).prompt)).toEqual([compute, repeat, repeat, compute]);
    expect([1, 2, 3, 4].map(namesOf)).toEqual([['calculator'], [], ['calculator'], []]);
  });

  test.each([1, 2, 3, 4])('an expert of level %i calls only what is given and asked for', (level) => {
    const task = at(level, 3);
    const { turns } = environment.demonstrate(task, 0);
    expect(turns.map((turn) => turn.call?.name)).toEqual(
      level === 1 ? ['calculator', undefined] : [undefined],
    );
    expect(turns.at(-1)).toEqual({ answer: task.answer });
  });

  test('an expression is repeated as it stands, and without a tool its result is no answer', () => {
    const result = at(1, 5).answer!;
    expect(result).toMatch(/^\d+$/u);
    expect([2, 3].map((level) => `Repeat ${at(level, 5).answer}.`)).toEqual([
      at(2, 5).prompt,
      at(3, 5).prompt,
    ]);
    expect(at(4, 5).answer).toBe('no tool');
  });

  test('no expression is in two splits, at whatever level', () => {
    const of = (split: 'train' | 'heldout' | 'test'): string[] =>
      [1, 2, 3, 4].flatMap((level) =>
        Array.from({ length: 200 }, (_, index) =>
          environment
            .task({ environment: environment.name, split, level, index })
            .prompt.replace(/^\w+ /u, ''),
        ),
      );
    const sets = SPLITS.map((split) => new Set(of(split)));
    for (const [i, one] of sets.entries())
      for (const other of sets.slice(i + 1)) expect([...one].filter((each) => other.has(each))).toEqual([]);
  });

  test('a level that is not there is refused', () => {
    expect(() => at(5)).toThrow(/no level 5/);
  });
});
