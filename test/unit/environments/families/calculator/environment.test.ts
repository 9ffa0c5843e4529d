import { describe, expect, test } from 'vitest';
import type { Split } from '../../../../../core/refs.ts';
import { parseAction } from '../../../../../engine/dialect/gradus/parse-action.ts';
import {
  observationTokens,
  promptTokens,
  turnText,
  turnTokens,
} from '../../../../../engine/dialect/gradus/render.ts';
import { SPECIAL_TOKENS } from '../../../../../engine/dialect/gradus/special-tokens.ts';
import { Tokenizer } from '../../../../../engine/tokenizer/tokenizer.ts';
import { trainTokenizer } from '../../../../../engine/tokenizer/train-bpe.ts';
import {
  calculatorEnvironment,
  slowCalculatorEnvironment,
} from '../../../../../environments/families/calculator/environment.ts';
import { calculate } from '../../../../../environments/families/calculator/tool.ts';
import { demonstrationCorpus } from '../../../../../activities/training/corpus.ts';

const environment = calculatorEnvironment();
const SPLITS: Split[] = ['train', 'heldout', 'test'];
const taskAt = (split: Split, level: number, index: number) =>
  environment.task({ environment: 'calculator', split, level, index });
const expressionOf = (task: ReturnType<typeof taskAt>) => (task.info as { expression: string }).expression;

describe('calculator tasks', () => {
  test('no task of one split is a task of another, however it is told', () => {
    const owner = new Map<string, Split>();
    for (const split of SPLITS) {
      for (const level of environment.levels) {
        for (let index = 0; index < 2000; index++) {
          const task = taskAt(split, level, index);
          for (const key of [`prompt ${task.prompt}`, `expression ${expressionOf(task)}`]) {
            if ((owner.get(key) ?? split) !== split)
              expect.fail(`${key} is in ${owner.get(key)} and ${split}`);
            owner.set(key, split);
          }
        }
      }
    }
  });

  test('the same coordinates give the same task, in any order and from another instance', () => {
    const other = calculatorEnvironment();
    for (const level of environment.levels.toReversed()) {
      for (const index of [700, 3, 0]) {
        const ref = { environment: 'calculator', split: 'heldout' as const, level, index };
        expect(other.task(ref)).toEqual(environment.task(ref));
      }
    }
  });

  test('the 1,000 held-out tasks of levels 1 to 3 are all different', () => {
    const prompts = new Set<string>();
    for (const level of [1, 2, 3]) {
      for (let index = 0; index < 334; index++) prompts.add(taskAt('heldout', level, index).prompt);
    }
    expect(prompts.size).toBe(3 * 334);
    expect(new Set(Array.from({ length: 1000 }, (_, i) => taskAt('heldout', 1, i).prompt)).size).toBe(1000);
  });

  test('coordinates that do not exist are refused', () => {
    expect(() => taskAt('train', 6, 0)).toThrow('levels are 1, 2, 3, 4, 5');
    expect(() => taskAt('train', 1, -1)).toThrow('no task -1');
    expect(() => taskAt('train', 1, 0.5)).toThrow('no task 0.5');
  });

  test('the slow variant has the same problems, a long tool of the same name', () => {
    const slow = slowCalculatorEnvironment({ seconds: 0 });
    const ref = { environment: 'calculator-slow', split: 'train' as const, level: 3, index: 5 };
    expect(slow.task(ref)).toEqual({ ...taskAt('train', 3, 5), ref });
    expect(slow.tools[0]).toMatchObject({ name: 'calculator', placement: 'long', effect: 'idempotent' });
  });
});

describe('calculator demonstrations', () => {
  test.each(environment.levels)('solve level %i with the real tool', (level) => {
    for (let index = 0; index < 500; index++) {
      const task = taskAt('train', level, index);
      const { turns, weight } = [0, 1, 2, 3, 4, 5]
        .map((way) => environment.demonstrate(task, way))
        .find((one) => one.weight > 0)!;
      expect(weight).toBe(1);
      const results = new Set<string>();
      for (const [i, turn] of turns.entries()) {
        const action = parseAction(turnText(turn));
        if (i === turns.length - 1) {
          expect(action).toEqual({ kind: 'answer', answer: task.answer });
          expect(results.has(task.answer!)).toBe(true);
        } else if (action.kind === 'call') {
          results.add(calculate((action.call.arguments as { expression: string }).expression));
        } else {
          expect.fail(`${JSON.stringify(turn)} is no call`);
        }
      }
      if (level <= 3) expect(turns).toHaveLength(level + 1);
      expect(results.size).toBeGreaterThan(0);
    }
  });

  test('one in twenty shows a bad last turn with a negative weight, always the same for the same index', () => {
    const reasons = new Set<string>();
    let negative = 0;
    for (let index = 0; index < 4000; index++) {
      const task = taskAt('train', 1 + (index % 3), index);
      const demonstration = environment.demonstrate(task, index % 7);
      expect(environment.demonstrate(task, index % 7)).toEqual(demonstration);
      if (demonstration.weight > 0) continue;
      negative++;
      const action = parseAction(turnText(demonstration.turns.at(-1)!));
      reasons.add(
        action.kind === 'malformed'
          ? action.reason
          : action.kind === 'call'
            ? action.call.name
            : 'early answer',
      );
    }
    expect(negative / 4000).toBeGreaterThan(0.03);
    expect(negative / 4000).toBeLessThan(0.07);
    expect(reasons).toEqual(new Set(['call is not JSON', 'search', 'early answer', 'text outside tags']));
  });

  test('are short with the tokenizer that is trained on them', () => {
    const json = trainTokenizer(demonstrationCorpus([environment], 400), 512, SPECIAL_TOKENS);
    expect(JSON.stringify(trainTokenizer(demonstrationCorpus([environment], 400), 512, SPECIAL_TOKENS))).toBe(
      JSON.stringify(json),
    );
    const tokenizer = Tokenizer.fromJson(json);
    expect(tokenizer.vocabSize).toBeLessThanOrEqual(512);
    expect(tokenizer.encode('{"name":"calculator","arguments":{"expression":"')).toHaveLength(1);
    for (const level of [1, 2, 3]) {
      for (let index = 0; index < 200; index++) {
        const task = taskAt('heldout', level, index);
        const { turns } = environment.demonstrate(task, 0);
        expect(promptTokens(tokenizer, [{ role: 'user', content: task.prompt }]).length).toBeLessThanOrEqual(
          32,
        );
        let length = 0;
        for (const turn of turns) {
          length += turnTokens(tokenizer, turn).length;
          if (turn.call?.name !== 'calculator') continue;
          const text = calculate((turn.call.arguments as { expression: string }).expression);
          length += observationTokens(tokenizer, { text }).length;
        }
        expect(length).toBeLessThanOrEqual(72);
      }
    }
  });
});
