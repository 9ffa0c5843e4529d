import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { expect, test } from 'vitest';
import { verify } from '../../../../../activities/verification/verify-episodes.ts';
import { parseSpec } from '../../../../../spec/parse-spec.ts';
import { rlSpec } from '../../../../../bench/engine/grpo/specs.ts';
import type { Episode, Turn } from '../../../../../core/episode/episode.ts';
import { parseAction } from '../../../../../engine/dialect/gradus/parse-action.ts';
import { calculate } from '../../../../../environments/families/calculator/tool.ts';
import { ToolRefusal } from '../../../../../environments/contract/environment.ts';
import { loadEnvironments } from '../../../../../environments/families/index.ts';
import { findOnPath } from '../../../../../infra/setup/command.ts';
import { hostedHere } from '../../../../../environments/host/hosted-environment.ts';

// The reward and the tool that TRL is given must be ours. They need Python's own library and no other.

const python = await findOnPath('python3');
const environments = await loadEnvironments([]);
const environment = environments.get('calculator')!;
const spec = parseSpec(rlSpec(false, 'warm', 1, 1), 'bench', environments);
const ref = { environment: 'calculator', split: 'train', level: 2, index: 7 } as const;
const right = (await environment.task(ref)).answer!;

function ask(expression: string, input: unknown): unknown {
  const program = `import json, sys
from calculator_task import *
asked = json.load(sys.stdin)
print(json.dumps([${expression} for one in asked]))`;
  const { stdout, stderr, status } = spawnSync(python!, ['-c', program], {
    input: JSON.stringify(input),
    encoding: 'utf8',
    env: {
      ...process.env,
      PYTHONPATH: path.resolve(import.meta.dirname, '../../../../../bench/engine/anchors'),
      PYTHONDONTWRITEBYTECODE: '1',
    },
  });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

const call = (expression: string, name = 'calculator'): string =>
  `<tool_call>${JSON.stringify({ name, arguments: { expression } })}</tool_call>`;
const EPISODES: string[][] = [
  [call('12+7'), `<answer>${right}</answer>`],
  [`<think>12+7</think>${call('12+7')}`, `<answer> +0${right}.0 </answer><|im_end|>`],
  [call('12+7'), '<answer>-1</answer>'],
  [call('12+7'), call('12+7'), call('12+7'), `<answer>${right}</answer>`],
  [call('12+7', 'search'), `<answer>${right}</answer>`],
  [call('12+7', 'search'), call('1', 'other'), call('2', 'third'), `<answer>${right}</answer>`],
  ['12+7=19', `<answer>${right}</answer>`],
  [
    '<tool_call>12+7</tool_call>',
    '<tool_call>[]</tool_call>',
    '<tool_call>{"name":"calculator"}</tool_call>',
  ],
  [`${call('12+7')}<|im_end|>`, '<answer></answer>', '<answer>1</answer>2'],
  [`<think>a</think> ${call('1+1')}`, '<think>b', `<think><answer></think><answer>${right}</answer>`],
  [call('12+7'), '<tool_call>{"name":"calculator","arg'],
];

const hosted = hostedHere(environment);

test.skipIf(!python)('an episode earns the same in Python', async () => {
  const ours = await Promise.all(
    EPISODES.map(async (written) => {
      const turns = written.map((text): Turn => ({ start: 0, end: 0, text, action: parseAction(text) }));
      const last = turns.at(-1)!.action;
      const status: Episode['status'] =
        last.kind === 'answer'
          ? { kind: 'answered', answer: last.answer }
          : { kind: 'truncated', limit: 'tokens' };
      const episode: Episode = {
        sample: 0,
        task: 0,
        tokens: [],
        mask: [],
        samplerLogprobs: [],
        turns,
        status,
      };
      const outcome = await verify(hosted, { ref, episode }, spec.reward, {
        signal: new AbortController().signal,
      });
      return 'reward' in outcome ? outcome.reward : NaN;
    }),
  );
  const theirs = ask(
    'reward_of(one["turns"], one["answer"])',
    EPISODES.map((turns) => ({ turns, answer: right })),
  ) as number[];
  expect(new Set(ours).size).toBeGreaterThan(6);
  theirs.forEach((reward, i) => expect(reward, EPISODES[i]!.join(' ')).toBeCloseTo(ours[i]!, 9));
});

test.skipIf(!python)('the calculator answers and refuses the same in Python', () => {
  const expressions =
    '12+7| 12 - 70 |-3*4|84/7|85/7|1/0|007*2|999999999999999*2|9999999999999999+1|1+2*3|(1+2)|12||x|1.5+1|2**3|5%2|1+|12 7|print(1)|"a"+1|--1+2'.split(
      '|',
    );
  const ours = expressions.map((expression) => {
    try {
      return calculate(expression);
    } catch (error) {
      if (error instanceof ToolRefusal) return 'refused';
      throw error;
    }
  });
  const theirs = (ask('calculator(one)', expressions) as string[]).map((result) =>
    result.startsWith('error: ') ? 'refused' : result,
  );
  expect(theirs).toEqual(ours);
});

test.skipIf(!python)('what the policy wrote is told from what the tool said', () => {
  const whole = `${call('12+7')}<tool_response>19</tool_response>${call('19+1')}<tool_response>20</tool_response><answer>20</answer>`;
  expect(ask('turns_of(one)', [whole])).toEqual([[call('12+7'), call('19+1'), '<answer>20</answer>']]);
});
