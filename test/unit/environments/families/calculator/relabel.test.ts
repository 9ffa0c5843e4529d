import { describe, expect, test } from 'vitest';
import type { Turn } from '../../../../../core/episode/episode.ts';
import type { Split } from '../../../../../core/refs.ts';
import { parseAction } from '../../../../../engine/dialect/gradus/parse-action.ts';
import { turnText } from '../../../../../engine/dialect/gradus/render.ts';
import { calculatorEnvironment } from '../../../../../environments/families/calculator/environment.ts';
import {
  expressionsOf,
  parseExpression,
  printExpression,
  steps,
  type Operation,
} from '../../../../../environments/families/calculator/expression.ts';
import { mayBeAsked, splitOf } from '../../../../../environments/families/calculator/problems.ts';
import { calculate } from '../../../../../environments/families/calculator/tool.ts';
import type { Candidate, Task } from '../../../../../environments/contract/environment.ts';
import { hostedHere } from '../../../../../environments/host/hosted-environment.ts';

const environment = calculatorEnvironment();
const SPLITS: Split[] = ['train', 'heldout', 'test'];
const taskAt = (split: Split, level: number, index: number): Task =>
  environment.task({ environment: 'calculator', split, level, index });
const isTold = ({ info }: Task) => (info as { told: boolean }).told;
/** The first problem of a level, or of those from an index on, that is told so. */
const firstOf = (level: number, told: boolean, from = 0): Task => {
  for (let index = from; ; index++) {
    const task = taskAt('train', level, index);
    if (isTold(task) === told) return task;
  }
};
const expressionOf = ({ info }: Task) =>
  parseExpression((info as { expression: string }).expression) as Operation;
const readAs = (expression: string) => parseExpression(expression) as Operation;

/** An episode that writes these texts, each call answered by the calculator. */
function episodeOf(task: Task, texts: readonly string[]): Candidate {
  const turns = texts.map((text): Turn => {
    const action = parseAction(text);
    if (action.kind !== 'call') return { start: 0, end: 0, text, action };
    const { expression } = action.call.arguments as { expression: string };
    return { start: 0, end: 0, text, action, observation: { text: calculate(expression) } };
  });
  const last = turns.at(-1)!.action;
  const answer = last.kind === 'answer' ? last.answer : null;
  const status = answer === null ? ({ kind: 'ended' } as const) : ({ kind: 'answered', answer } as const);
  return { task, episode: { turns, status }, answer, tools: ['calculator'] };
}
const calls = (expression: string) =>
  `<tool_call>{"name":"calculator","arguments":{"expression":"${expression}"}}</tool_call>`;
const says = (answer: string) => `<answer>${answer}</answer>`;
const relabelled = (task: Task, ...texts: string[]) => environment.relabel!(episodeOf(task, texts));

/** The first of these that is a problem of the train split. */
const inTrain = (expressions: readonly string[]): string =>
  expressions.find((one) => splitOf(one) === 'train')!;
const numbers = Array.from({ length: 80 }, (_, i) => i + 11);

describe('what the calculator could have asked', () => {
  test('is what it asks, in its own split alone, and what an expert calls tells it', () => {
    for (const split of SPLITS) {
      for (const level of environment.levels) {
        for (let index = 0; index < 100; index++) {
          const expression = expressionOf(taskAt(split, level, index));
          const text = printExpression(expression);
          expect(
            SPLITS.filter((one) => mayBeAsked(one, level, expression)),
            text,
          ).toEqual([split]);
          const operations = steps(expression).map(({ operation }) => operation);
          expect(expressionsOf(operations).map(printExpression)).toContain(text);
        }
      }
    }
  });

  test.each([
    ['more operations than the level has', 2, '3+4+5+6'],
    ['fewer', 3, '3+4+5'],
    ['an operator that the level has not', 1, '8/2'],
    ['a number that is too large', 1, '100+7'],
    ['a zero', 2, '0+7+12'],
    ['a number below zero', 2, '7+(-3)+5'],
    ['a result below zero', 2, '3-7+12'],
    ['a factor that is too large', 2, '7+5*30'],
    ['another order than the one written', 2, '7+5*3'],
    ['parentheses', 3, '(7+5)*3+2'],
    ['the same operation twice', 4, '(7+5)+(7+5)'],
  ])('has not %s', (_, level, text) => {
    expect(SPLITS.filter((split) => mayBeAsked(split, level, readAs(text)))).toEqual([]);
  });

  test('is what the same calls may come from, where they may come from several', () => {
    const found = expressionsOf(['12+7', '19+19'].map(readAs)).map(printExpression);
    expect(found).toEqual(['12+7+19', '19+(12+7)']);
    expect(expressionsOf(['12+7', '3*4', '19-12'].map(readAs)).map(printExpression)).toContain('12+7-3*4');
    expect(expressionsOf(['12+7', '20-3'].map(readAs))).toEqual([]);
    expect(expressionsOf([])).toEqual([]);
  });
});

describe('an episode that computed something else', () => {
  const [asked, sums] = [firstOf(1, false), firstOf(3, false)];

  test('has solved the task that asks for it, which verifiers confirm', async () => {
    const other = inTrain(numbers.map((n) => `${n}+7`));
    const task = relabelled(asked, calls(other), says(calculate(other)));
    expect(task).toEqual({
      prompt: other,
      answer: calculate(other),
      calls: [{ name: 'calculator', arguments: { expression: other } }],
      info: { expression: other, told: false },
    });
    const episode = episodeOf(asked, [calls(other), says(calculate(other))]);
    const verifiers = ['exact-match', 'boxed-math', 'format', 'sub-goals', 'tool-match', 'tool-shaping'];
    const [answer] = await hostedHere(environment).relabellings(
      verifiers,
      [{ ref: asked.ref, episode: episode.episode }],
      { signal: new AbortController().signal },
    );
    expect(answer).toMatchObject({ prompt: other, said: verifiers.map(() => ({ score: 1 })) });
  });

  test('is given the very problem that an expert solves so, at every level', () => {
    for (const level of environment.levels) {
      for (let index = 0; index < 60; index++) {
        const { turns, weight } = environment.demonstrate(taskAt('train', level, index), 0);
        if (weight < 0) continue;
        const other = relabelled(firstOf(level, false, index + 1), ...turns.map(turnText));
        expect(other?.answer).toBe(turns.at(-1)!.answer);
        expect(other?.calls).toEqual(turns.flatMap(({ call }) => call ?? []));
      }
    }
  });

  test('has solved none where it was told a story', () => {
    const other = inTrain(numbers.map((n) => `${n}+7`));
    expect(relabelled(firstOf(1, true), calls(other), says(calculate(other)))).toBeNull();
  });

  test('has solved none where the level asks for more: what was left out would be taught', () => {
    const single = inTrain(numbers.map((n) => `${n}+7`));
    expect(relabelled(sums, calls(single), says(calculate(single)))).toBeNull();
  });

  test('has solved none that another split has', () => {
    const held = numbers.map((n) => `${n}+7`).find((one) => splitOf(one) === 'heldout')!;
    expect(relabelled(asked, calls(held), says(calculate(held)))).toBeNull();
  });

  test('has solved none where its calls have nothing to do with each other, or with its answer', () => {
    const single = inTrain(numbers.map((n) => `${n}+7`));
    expect(relabelled(asked, calls(single), says('1'))).toBeNull();
    expect(relabelled(asked, says(calculate(single)))).toBeNull();
    expect(relabelled(asked, calls(single))).toBeNull();
    expect(relabelled(asked, calls(single), calls(single), says(calculate(single)))).toBeNull();
    expect(relabelled(sums, calls('11+2'), calls('50-7'), calls('9*8'), says('72'))).toBeNull();
  });

  test('is no example where a call failed, or a turn was malformed', () => {
    const single = inTrain(numbers.map((n) => `${n}+7`));
    const refused = episodeOf(asked, [calls(single), says(calculate(single))]);
    refused.episode.turns[0]!.observation = { text: 'error: busy', error: 'tool-error' };
    expect(environment.relabel!(refused)).toBeNull();
    const strange = calls(single).replace('calculator', 'search');
    expect(relabelled(asked, strange, says(calculate(single)))).toBeNull();
    expect(relabelled(asked, `so: ${single}`, calls(single), says(calculate(single)))).toBeNull();
  });

  test('is no example where it thought of another problem than the one that it computed', () => {
    const other = inTrain(numbers.map((n) => `${n}+7`));
    const thinking = (thought: string) =>
      relabelled(asked, `<think>${thought}</think>${calls(other)}`, says(calculate(other)));
    expect(thinking(other)).not.toBeNull();
    expect(thinking('Tom has 7 left')).not.toBeNull();
    expect(thinking('1+1')).toBeNull();
    expect(thinking(`${other} * 3`)).toBeNull();
  });
});
