import { describe, expect, test } from 'vitest';
import { assertSpeaks } from '../../../spec/assert-speaks.ts';
import type { DialectSpec } from '../../../core/schema/dialect.ts';
import type { TokenizerConfig } from '../../../engine/dialect/checkpoint-dialect.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { configOf, tokenizerJsonOf } from '../engine/dialect/fixtures.ts';
import { environmentWith, toolThat } from '../activities/test-environment.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';

const twoTools = environmentWith([toolThat(() => ''), toolThat(() => '', { name: 'open' })]);
const environments = inThisProcess([calculatorEnvironment(), twoTools]);
const encode = (text: string) => new TextEncoder().encode(text);
const speaks =
  (config: TokenizerConfig, used: string, dialect?: DialectSpec, maxParallelCalls?: number) => () =>
    assertSpeaks(
      new Map([
        ['tokenizer.json', encode(tokenizerJsonOf('qwen'))],
        ['tokenizer_config.json', encode(JSON.stringify(config))],
      ]),
      {
        stages: [],
        sampling: {
          temperature: 1,
          topK: 0,
          topP: 1,
          maxTurns: 8,
          maxCompletionTokens: 160,
          maxParallelCalls,
        },
        evaluation: { arms: [{ environment: used, level: 1 }], count: 1, samples: 1, confidence: 0.9 },
      },
      dialect,
      environments,
    );
const qwen = configOf('qwen', 'qwen3-like');

/** Refuses a second result behind a first. */
const ONE_RESULT = `{%- if messages[-1].role == 'tool' and messages[-2].role == 'tool' %}{{ raise_exception('one result alone') }}{% endif -%}${qwen['chat_template'] as string}`;

/** Passes over the second of two results. */
const FIRST_RESULT = `{%- if messages[-1].role == 'tool' and messages[-2].role == 'tool' %}{% set messages = messages[:-1] %}{% endif -%}${qwen['chat_template'] as string}`;

describe('a run that begins with a checkpoint', () => {
  test('is taken when the checkpoint can call the tools of every environment', () => {
    expect(speaks(qwen, 'calculator')).not.toThrow();
    expect(speaks(qwen, 'library')).not.toThrow();
    expect(speaks(qwen, 'calculator', { name: 'search-r1' })).not.toThrow();
    expect(speaks(qwen, 'library', undefined, 4)).not.toThrow();
  });

  test.each<[string, () => void, string]>([
    ['speaks nothing that is known', speaks({}, 'calculator'), 'name its dialect in model.dialect'],
    [
      'may make several calls in a turn, and its turns end with a call',
      speaks(qwen, 'calculator', { name: 'search-r1' }, 2),
      'sampling.maxParallelCalls: a turn of search-r1 ends with its call, so that it has no second one',
    ],
    [
      'may make several calls in a turn, and its chat template tells one result alone',
      speaks({ ...qwen, chat_template: ONE_RESULT }, 'calculator', { name: 'hermes' }, 2),
      'one result alone',
    ],
    [
      'may make several calls in a turn, and its chat template passes over a result',
      speaks({ ...qwen, chat_template: FIRST_RESULT }, 'calculator', { name: 'hermes' }, 2),
      'leaves out a result',
    ],
    [
      'cannot call one of several tools by a tag',
      speaks(qwen, 'library', { name: 'search-r1' }),
      'with the tools of library: search-r1 calls one tool: say which in model.dialect.tool (tools: search, open)',
    ],
    [
      'has a template that cannot be split',
      speaks({ ...qwen, chat_template: '<tool_call>' }, 'library'),
      'leaves out tool calls',
    ],
    [
      'has not the tokens of a dialect',
      speaks(qwen, 'library', { name: 'gradus' }),
      'has no token "</answer>"',
    ],
  ])('is refused before anything is spent when it %s', (_, run, message) => {
    expect(run).toThrow(message);
    expect(run).toThrow(
      expect.objectContaining({ boundary: 'spec', type: 'invalid', retryable: false }) as Error,
    );
  });
});
