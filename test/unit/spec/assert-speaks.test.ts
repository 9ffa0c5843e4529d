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
const speaks = (config: TokenizerConfig, used: string, dialect?: DialectSpec) => () =>
  assertSpeaks(
    new Map([
      ['tokenizer.json', encode(tokenizerJsonOf('qwen'))],
      ['tokenizer_config.json', encode(JSON.stringify(config))],
    ]),
    {
      stages: [],
      evaluation: { arms: [{ environment: used, level: 1 }], count: 1, samples: 1, confidence: 0.9 },
    },
    dialect,
    environments,
  );
const qwen = configOf('qwen', 'qwen3-like');

describe('a run that begins with a checkpoint', () => {
  test('is taken when the checkpoint can call the tools of every environment', () => {
    expect(speaks(qwen, 'calculator')).not.toThrow();
    expect(speaks(qwen, 'library')).not.toThrow();
    expect(speaks(qwen, 'calculator', { name: 'search-r1' })).not.toThrow();
  });

  test.each<[string, () => void, string]>([
    ['speaks nothing that is known', speaks({}, 'calculator'), 'name its dialect in model.dialect'],
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
