import { describe, expect, test } from 'vitest';
import type { Action } from '../../../../core/episode/episode.ts';
import { composeReward, succeeded } from '../../../../core/episode/reward.ts';
import type { Composition } from '../../../../core/episode/reward.ts';
import { ruleVerdicts } from '../../../../core/reward/rules.ts';
import { parseSpec } from '../../../../spec/parse-spec.ts';
import { calculatorEnvironment } from '../../../../environments/families/calculator/environment.ts';
import {
  evaluateExpression,
  parseExpression,
} from '../../../../environments/families/calculator/expression.ts';
import type { FastVerifier, Task } from '../../../../environments/contract/environment.ts';
import { boxedMath } from '../../../../environments/verifiers/math/boxed-math.ts';
import { toolMatch } from '../../../../environments/verifiers/tool-match.ts';
import { bad, call, candidateOf, judged, says } from './candidates.ts';

// What a policy would try that is after the reward and not after the task. Each must earn less than who does the task;
// what it earns all the same is said in docs/rewards.md.

const environment = calculatorEnvironment();
/** Of two operations, so that a right answer takes two calls. */
const task = environment.task({ environment: 'calculator', split: 'train', level: 2, index: 0 });
const calls = task.calls!.map(({ name, arguments: args }) => call(name, args));
const wrong = call('calculator', { expression: '1+1' });
const honest: Action[] = [...calls, says(task.answer!)];

const ADVERSARIES: [string, Action[]][] = [
  ['does nothing', []],
  ['answers nothing', [says('')]],
  ['answers at random', [says('0')]],
  ['answers with the question', [says(task.prompt)]],
  ['answers with the expression', [says((task.info as { expression: string }).expression)]],
  ['answers with every number', [says(Array.from({ length: 200 }, (_, i) => i).join(', '))]],
  ['boxes every number', [says(Array.from({ length: 200 }, (_, i) => `\\boxed{${i}}`).join(' '))]],
  ['boxes the right answer and goes on', [says(`\\boxed{${task.answer}} \\boxed{unknown}`)]],
  ['calls tools and never answers', [...calls, ...calls, ...calls]],
  ['calls idly and answers wrong', [...Array.from({ length: 9 }, () => wrong), says('0')]],
  ['calls tools that there are not', [call('search', {}), call('search', {}), says('0')]],
  ['writes nothing that parses', [bad, bad, bad]],
];

const reward: Composition = parsed({
  components: [
    { verifier: 'exact-match', role: 'outcome', weight: 1 },
    { verifier: 'format', role: 'bonus', weight: 0.05, gatedBy: 'exact-match' },
    { verifier: 'tool-shaping', role: 'penalty', weight: 0.2 },
    { verifier: 'tool-match', role: 'bonus', weight: 0.2 },
    { verifier: 'sub-goals', role: 'bonus', weight: 0 },
  ],
  rules: [
    { kind: 'process', verifier: 'sub-goals', weight: 0.2 },
    { kind: 'overlong', buffer: 32, weight: 0.1 },
    { kind: 'diversity', weight: 0.2 },
    { kind: 'confidence', weight: 0.05, gatedBy: 'exact-match' },
  ],
});

function parsed(written: object): Composition {
  const tasks = [{ environment: 'calculator', levels: [2] }];
  const spec = {
    reward: written,
    model: { from: 'base' },
    stages: [{ name: 'rl', tasks, maxSteps: 1, graduation: { successAtLeast: 0.5 } }],
    evaluation: { tasks },
  };
  return parseSpec(spec, 'run', new Map([['calculator', environment]])).reward;
}

/** The outcomes of the samples of one task. Each sampled token was as likely as not. */
async function outcomesOf(of: Task, samples: readonly Action[][], tokens = 40) {
  const fast = environment.verifiers as readonly FastVerifier[];
  const heard = await Promise.all(
    samples.map(async (actions) => {
      const { episode } = candidateOf(of, actions);
      const verdicts = await Promise.all(
        reward.components.map(async ({ verifier: name }) => {
          const verifier = fast.find((one) => one.name === name)!;
          const { kind: _, steps, ...said } = await judged(verifier, candidateOf(of, actions));
          return { verifier: name, version: verifier.version, ...said, ...(steps && { steps: [...steps] }) };
        }),
      );
      const all = Array.from({ length: tokens });
      const samplerLogprobs = all.map(() => Math.log(0.5));
      return {
        verdicts,
        episode: { ...episode, tokens: all.map(() => 0), mask: all.map(() => 1 as const), samplerLogprobs },
      };
    }),
  );
  const ruled = ruleVerdicts(reward.rules!, heard);
  return heard.map(({ verdicts }, i) => composeReward(reward, [...verdicts, ...ruled[i]!]));
}

const rewardsOf = async (samples: readonly Action[][], tokens?: number): Promise<number[]> =>
  (await outcomesOf(task, samples, tokens)).map((outcome) =>
    outcome.kind === 'scored' ? outcome.reward : NaN,
  );

describe('a reward of everything there is', () => {
  test.each(ADVERSARIES)('pays less to who %s than to who does the task', async (_, actions) => {
    const [doing, [outcome]] = [await rewardsOf([honest]), await outcomesOf(task, [actions])];
    expect(succeeded(reward.components, outcome!)).toBe(false);
    const earned = outcome!.kind === 'scored' ? outcome!.reward : NaN;
    // Shaping weighs less than the outcome, so that no failure comes near a success.
    expect(earned).toBeLessThan(doing[0]! - 0.5);
  });

  test.each(ADVERSARIES.filter(([, actions]) => actions.at(-1)?.kind === 'answer' && actions.length === 1))(
    'pays nothing at all to who %s without a call',
    async (_, actions) => {
      expect((await rewardsOf([actions]))[0]).toBeLessThanOrEqual(1e-9);
    },
  );

  test('pays less for a right answer after idle calls, and the less, the more there are', async () => {
    const idling = (times: number): Action[] => [
      ...calls,
      ...Array.from({ length: times }, () => wrong),
      says(task.answer!),
    ];
    const [none, one, two] = await rewardsOf([idling(0), idling(1), idling(2)]);
    expect(one).toBeLessThan(none!);
    expect(two).toBeLessThan(one!);
  });

  test('pays less for a guess that is right than for the way to it', async () => {
    const [guess, way] = await rewardsOf([[says(task.answer!)], honest]);
    expect(guess).toBeLessThan(way! - 0.2);
  });

  test('pays nothing for tokens: padding up to the limit only takes off', async () => {
    const [[short], [long]] = [await rewardsOf([honest], 40), await rewardsOf([honest], 160)];
    expect(long).toBeCloseTo(short! - 0.1, 9);
  });

  test('pays nothing for being new and wrong', async () => {
    const different = [[says('90001')], [says('90002')], [says('90003')]];
    for (const earned of await rewardsOf(different)) expect(earned).toBeLessThanOrEqual(1e-9);
  });
});

describe('a box', () => {
  const question = 'What is 12/4 + 0?';
  const of = (answer: string) => candidateOf({ prompt: question, answer: '3' }, [says(answer)]);
  test.each([
    ['with the quotient of the question', '\\boxed{12/4}'],
    ['with the sum of the question', '\\boxed{12/4 + 0}'],
    ['with the whole question', `\\boxed{${question}}`],
    ['with every digit', '\\boxed{0,1,2,3,4,5,6,7,8,9}'],
    ['with a choice', '\\boxed{3 \\text{ or } 4}'],
    ['with an interval around it', '\\boxed{[0, 9]}'],
    ['with the right answer before the last one', '\\boxed{3}\\boxed{2}'],
    ['that is never closed', '\\boxed{3'],
    ['with more than an answer', `\\boxed{3${' '.repeat(600)}}`],
  ])('%s is paid nothing', async (_, answer) => {
    expect((await judged(boxedMath(), of(answer))).score).toBe(0);
  });

  // Named in docs/rewards.md: what is asked for is a number, not the way to it.
  test('with a right guess is paid in full', async () => {
    expect((await judged(boxedMath(), of('no idea: \\boxed{3}'))).score).toBe(1);
  });
});

test('calling every tool with every argument is paid less than calling the right one', async () => {
  const expected = [{ name: 'f', arguments: { x: 7 } }];
  const all = Array.from({ length: 20 }, (_, x) => call('f', { x }));
  const [right, brute] = await Promise.all(
    [
      [call('f', { x: 7 }), says('')],
      [...all, says('')],
    ].map((actions) => judged(toolMatch(), candidateOf({ calls: expected }, actions))),
  );
  expect(right!.score).toBe(1);
  expect(brute!.score).toBeLessThan(0.3);
});

test('the calculator knows the way through every task that it poses', async () => {
  for (const level of environment.levels) {
    for (let index = 0; index < 20; index++) {
      const of = environment.task({ environment: 'calculator', split: 'train', level, index });
      const way = [...of.calls!.map(({ name, arguments: args }) => call(name, args)), says(of.answer!)];
      // tool-shaping takes off for a call that is made twice, also where the way leads through it twice.
      const others = environment.verifiers.filter(({ name }) => name !== 'tool-shaping') as FastVerifier[];
      const verdicts = await Promise.all(others.map((verifier) => judged(verifier, candidateOf(of, way))));
      expect(verdicts.map(({ score }) => score)).toEqual(others.map(() => 1));
      const { expression } = of.info as { expression: string };
      expect(String(evaluateExpression(parseExpression(expression)))).toBe(of.answer);
    }
  }
});
