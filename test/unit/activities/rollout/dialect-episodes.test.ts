import { describe, expect, test } from 'vitest';
import { advanceEpisode, observe } from '../../../../activities/rollout/advance-episode.ts';
import { demonstrationSequences } from '../../../../activities/training/demonstrations.ts';
import type { Episode } from '../../../../core/episode/episode.ts';
import type { Json } from '../../../../core/json/json.ts';
import { randomKey } from '../../../../core/random.ts';
import type { DialectName } from '../../../../core/names.ts';
import { openDialect } from '../../../../engine/dialect/open-dialect.ts';
import {
  calculatorEnvironment,
  slowCalculatorEnvironment,
} from '../../../../environments/families/calculator/environment.ts';
import { ScriptedPolicy } from '../../../support/scripted-policy.ts';
import { configOf, tokenizerOf } from '../../engine/dialect/fixtures.ts';
import type { Family } from '../../engine/dialect/fixtures.ts';
import { tokenizer as ownTokenizer } from '../test-environment.ts';
import { describeTool } from '../../../../environments/host/facts.ts';
import { hostedHere, inThisProcess } from '../../../../environments/host/hosted-environment.ts';

interface Spoken {
  name: DialectName;
  family: Family | null;
  config: { [key: string]: Json };
  /** What the policy samples: a call with a mistake, a call, the answer. */
  turns: [string, string, string];
  /** The whole episode after the prompt. */
  read: (observations: [string, string]) => string[];
}

const qwen = (template: string, name: string) => ({
  ...configOf('qwen', template),
  gradus_dialect: { name },
});
const eot = '<|eot_id|>';

const dialects: Spoken[] = [
  {
    name: 'gradus',
    family: null,
    config: {},
    turns: [
      '<tool_call>7*3</tool_call>',
      '<tool_call>{"name":"calculator","arguments":{"expression":"7*3"}}</tool_call>',
      '<answer>21</answer>',
    ],
    read: (texts) => texts.map((text) => `<tool_response>${text}</tool_response>`),
  },
  {
    name: 'hermes',
    family: 'qwen',
    config: qwen('qwen3-like', 'hermes'),
    turns: [
      '<think>\nhm\n</think>\n\n<tool_call>\n7*3\n</tool_call><|im_end|>',
      'Now right.\n<tool_call>\n{"name": "calculator", "arguments": {"expression": "7*3"}}\n</tool_call><|im_end|>',
      '21<|im_end|>',
    ],
    read: (texts) =>
      texts.map(
        (text) =>
          `\n<|im_start|>user\n<tool_response>\n${text}\n</tool_response><|im_end|>\n<|im_start|>assistant\n`,
      ),
  },
  {
    name: 'llama3',
    family: 'llama',
    config: configOf('llama', 'llama3.1-like'),
    turns: [
      `<|python_tag|>7*3${eot}`,
      `{"name": "calculator", "parameters": {"expression": "7*3"}}<|eom_id|>`,
      `21${eot}`,
    ],
    read: (texts) =>
      texts.map(
        (text) =>
          `<|start_header_id|>ipython<|end_header_id|>\n\n"${text}"${eot}<|start_header_id|>assistant<|end_header_id|>\n\n`,
      ),
  },
  {
    name: 'search-r1',
    family: 'qwen',
    config: qwen('qwen2.5-like', 'search-r1'),
    turns: [
      '<think>I must multiply, which I am not good at, so I had better look.</think> <search></search>',
      '<search>7*3</search>',
      '<answer>21</answer>',
    ],
    read: (texts) => texts.map((text) => `\n\n<information>${text}</information>\n\n`),
  },
  {
    name: 'retool',
    family: 'qwen',
    config: { gradus_dialect: { name: 'retool', tool: 'calculator', argument: 'expression' } },
    turns: [
      'I compute.\n<code>\n```python\n```\n</code>',
      '<code>\n```python\n7*3\n```\n</code>',
      '<answer>\\boxed{21}</answer>',
    ],
    read: (texts) => texts.map((text) => `\n\n<interpreter>${text}</interpreter>\n\n`),
  },
];

const newEpisode = (): Episode => ({
  sample: 0,
  task: 0,
  tokens: [],
  mask: [],
  samplerLogprobs: [],
  turns: [],
  status: { kind: 'running' },
});

describe.each(dialects)('an episode in the dialect $name', ({ name, family, config, turns, read }) => {
  const tokenizer = family ? tokenizerOf(family) : ownTokenizer;
  const open = (environment = calculatorEnvironment()) =>
    openDialect(tokenizer, config, environment.tools.map(describeTool));

  /** The turns as they were sampled; one that only text ends goes on with what must be thrown away. */
  const recorded = (over = '') =>
    turns.map((text) => {
      const tokens = tokenizer.encode(text + over);
      return { tokens, logprobs: tokens.map((_, i) => -0.01 * (i + 1)) };
    });
  const contextOf = (environment = calculatorEnvironment(), over = '') => {
    const dialect = open(environment);
    const policy = new ScriptedPolicy(recorded(over));
    const hosted = hostedHere(environment);
    return {
      policy,
      tokenizer,
      dialect,
      environment: hosted,
      ref: { environment: environment.name, split: 'train' as const, level: 1, index: 0 },
      tools: hosted.tools,
      sampling: { temperature: 1, topK: 0, topP: 1, maxTurns: 8, maxCompletionTokens: 2000 },
      maxPositions: 6000,
      promptTokens: dialect.promptTokens([{ role: 'user', content: 'What is 7*3?' }]),
      episodeId: 'run/rl/1/0/0',
      policySession: '1/0',
      key: randomKey('test'),
      signal: new AbortController().signal,
    };
  };

  test('calls the calculator, reads what it says, and answers, token in, token out', async () => {
    expect(open().name).toBe(name);
    const context = contextOf();
    const episode = newEpisode();
    await advanceEpisode(context, episode);
    expect(episode.status).toEqual({ kind: 'answered', answer: '21' });
    expect(episode.turns.map(({ action }) => action.kind)).toEqual(['malformed', 'call', 'answer']);
    expect(episode.turns[1]!.observation!.text).toBe('21');
    const [wrong, right] = read([episode.turns[0]!.observation!.text, '21']);
    expect(tokenizer.decode(episode.tokens)).toBe(turns[0] + wrong + turns[1] + right + turns[2]);

    // Sampled ids and log-probabilities are kept as they were; everything else is masked out, without a log-probability.
    episode.turns.forEach(({ start, end, text }, i) => {
      const { tokens, logprobs } = recorded()[i]!;
      expect(text).toBe(turns[i]);
      expect(episode.tokens.slice(start, end)).toEqual(tokens);
      expect(episode.samplerLogprobs.slice(start, end)).toEqual(logprobs);
      expect(new Set(episode.mask.slice(start, end))).toEqual(new Set([1]));
      const until = episode.turns[i + 1]?.start ?? episode.tokens.length;
      expect(episode.mask.slice(end, until).every((bit) => bit === 0)).toBe(true);
      expect(episode.samplerLogprobs.slice(end, until).every((logprob) => logprob === 0)).toBe(true);
    });
    // Each turn saw the prompt and everything before it.
    for (const { start } of episode.turns) {
      const asked = context.policy.requests.find(({ continuation }) => continuation.length === start)!;
      expect([...asked.prefix, ...asked.continuation]).toEqual([
        ...context.promptTokens,
        ...episode.tokens.slice(0, start),
      ]);
    }
  });

  test('keeps nothing of what is sampled after the end of a turn', async () => {
    const clean = newEpisode();
    await advanceEpisode(contextOf(), clean);
    const overrun = newEpisode();
    const context = contextOf(undefined, '\n\nand then so on '.repeat(10));
    await advanceEpisode(context, overrun);
    expect(overrun.status).toEqual(clean.status);
    expect(overrun.tokens).toEqual(clean.tokens);
    expect(overrun.mask).toEqual(clean.mask);
    expect(overrun.samplerLogprobs).toEqual(clean.samplerLogprobs);
  });

  test('goes on after a long call as after a short one', async () => {
    const short = newEpisode();
    await advanceEpisode(contextOf(), short);
    const context = contextOf(slowCalculatorEnvironment());
    const long = newEpisode();
    await advanceEpisode(context, long);
    expect(long.status).toEqual({
      kind: 'calling',
      call: { name: 'calculator', arguments: { expression: '7*3' } },
    });
    observe(context, long, { text: '21' });
    await advanceEpisode(context, long);
    expect([long.tokens, long.mask, long.status]).toEqual([short.tokens, short.mask, short.status]);
  });

  test('is truncated where a turn finds no end', async () => {
    const context = contextOf();
    context.sampling.maxCompletionTokens = context.tokenizer.encode(turns[0]).length - 2;
    const episode = newEpisode();
    await advanceEpisode(context, episode);
    expect(episode.status).toEqual({ kind: 'truncated', limit: 'tokens' });
    expect(episode.tokens).toEqual(recorded()[0]!.tokens.slice(0, -2));
  });

  test('is demonstrated as it is played: the prompt and results masked out, turns masked in', async () => {
    const environment = calculatorEnvironment();
    const dialect = open(environment);
    const request = { arms: [{ environment: 'calculator', level: 2 }], count: 60, round: 1, seed: 3 };
    const environments = inThisProcess([environment]);
    const sequences = await demonstrationSequences(
      environments,
      () => dialect,
      request,
      new AbortController().signal,
    );
    const good = sequences.filter(({ streams }) => streams.advantages!.some((weight) => weight > 0));
    expect(good.length).toBeGreaterThan(40);
    for (const { tokens, mask } of good) {
      const first = mask.indexOf(1);
      const context = { ...contextOf(environment), promptTokens: tokens.slice(0, first) };
      // The policy that samples what is masked in reads, in between, what is masked out.
      const pieces: number[][] = [];
      mask.forEach((bit, i) => {
        if (bit === 1 && mask[i - 1] === 0) pieces.push([]);
        if (bit === 1) pieces.at(-1)!.push(tokens[i]!);
      });
      context.policy = new ScriptedPolicy(pieces.map((piece) => ({ tokens: piece })));
      const episode = newEpisode();
      await advanceEpisode(context, episode);
      expect(episode.status.kind).toBe('answered');
      expect(episode.tokens).toEqual(tokens.slice(first));
      expect(episode.mask).toEqual(mask.slice(first));
    }
  });
});
