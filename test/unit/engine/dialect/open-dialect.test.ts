import { describe, expect, test } from 'vitest';
import type { Json } from '../../../../core/json/json.ts';
import {
  dialectOfCheckpoint,
  tokenizerConfigOf,
  withDialect,
} from '../../../../engine/dialect/checkpoint-dialect.ts';
import { openDialect } from '../../../../engine/dialect/open-dialect.ts';
import { tokenizer as own } from '../../activities/test-environment.ts';
import { configOf, renderingsOf, templateOf, tokenizerOf } from './fixtures.ts';

const filesOf = (texts: Record<string, string>) =>
  new Map(Object.entries(texts).map(([name, text]) => [name, new TextEncoder().encode(text)]));
const qwen = tokenizerOf('qwen');
const chatml = configOf('qwen', 'qwen2.5-like');
const withTemplate = (template: Json) => ({ ...chatml, chat_template: template });
const hermes = (template: string) =>
  openDialect(qwen, { ...withTemplate(template), gradus_dialect: { name: 'hermes' } }, []);

describe('the dialect of a checkpoint', () => {
  test('is the recorded one, before anything else', () => {
    const files = filesOf({ 'tokenizer_config.json': JSON.stringify(chatml) });
    const recorded = withDialect(files, { name: 'retool', tool: 'python' });
    expect([...recorded.keys()]).toEqual(['tokenizer_config.json']);
    const config = tokenizerConfigOf(new Map([...files, ...recorded]));
    expect(config).toMatchObject(chatml);
    expect(dialectOfCheckpoint(qwen, config)).toEqual({ name: 'retool', tool: 'python' });
    expect(dialectOfCheckpoint(qwen, tokenizerConfigOf(withDialect(new Map(), { name: 'gradus' })))).toEqual({
      name: 'gradus',
    });
  });

  test('is read from the files that a model comes with, as transformers reads them', () => {
    const files = {
      'tokenizer_config.json': JSON.stringify({ ...chatml, chat_template: 'old' }),
      'chat_template.jinja': templateOf('qwen2.5-like'),
      'special_tokens_map.json': JSON.stringify({ eos_token: 'old', bos_token: '<s>' }),
    };
    expect(tokenizerConfigOf(filesOf(files))).toEqual({ ...chatml, bos_token: '<s>' });
    expect(tokenizerConfigOf(new Map())).toEqual({});
    expect(() => tokenizerConfigOf(filesOf({ 'tokenizer_config.json': '{' }))).toThrow(
      'tokenizer_config.json is not JSON',
    );
    expect(() => tokenizerConfigOf(filesOf({ 'tokenizer_config.json': '[]' }))).toThrow('not a JSON object');
  });

  test('follows from its special tokens where it has no chat template', () => {
    expect(dialectOfCheckpoint(own, {})).toEqual({ name: 'gradus' });
    expect(() => dialectOfCheckpoint(qwen, {})).toThrow('name its dialect in model.dialect (gradus, hermes');
  });

  test.each([
    ['qwen2.5-like', 'hermes'],
    ['qwen3-like', 'hermes'],
    ['llama3.1-like', 'llama3'],
    ['llama3.2-like', 'llama3'],
    ['mistral-like', 'mistral'],
    ['deepseek-r1-like', 'deepseek'],
    ['deepseek-v3.1-like', 'deepseek'],
    ['mistral-args-like', 'mistral'],
  ])('follows from its chat template: %s is %s', (template, name) => {
    expect(dialectOfCheckpoint(qwen, withTemplate(templateOf(template))).name).toBe(name);
  });

  test('follows from the template for tools, where there are several', () => {
    const several = [
      { name: 'default', template: 'plain' },
      { name: 'tool_use', template: templateOf('qwen2.5-like') },
    ];
    expect(dialectOfCheckpoint(qwen, withTemplate(several)).name).toBe('hermes');
  });

  test('is asked for where nothing says it, or what is recorded does not exist', () => {
    expect(() => dialectOfCheckpoint(qwen, withTemplate('{{ messages[0].content }}'))).toThrow(
      'model.dialect',
    );
    expect(() => dialectOfCheckpoint(qwen, { gradus_dialect: { name: 'klingon' } })).toThrow('which is none');
    expect(() => openDialect(qwen, { gradus_dialect: { name: 'hermes' } }, [])).toThrow(
      'needs a chat template',
    );
  });
});

test('files that make no sense are an error that no retry repeats, with advice', () => {
  for (const template of [[null], [{ name: 'default' }, 3]] as Json[]) {
    expect(() => openDialect(qwen, withTemplate(template), [])).toThrow(
      expect.objectContaining({ name: 'GradusError', retryable: false }),
    );
  }
  expect(() => openDialect(qwen, withTemplate([null]), [])).toThrow(
    'take the ones that were saved with the model',
  );
});

describe('a chat template is refused', () => {
  const good = templateOf('qwen2.5-like');

  test('when it cannot be read', () => {
    expect(() => hermes('{% if %}')).toThrow('cannot be read');
  });

  test('when it raises, with its own words', () => {
    expect(() => hermes(`${good}{{ raise_exception('no such luck') }}`)).toThrow('no such luck');
  });

  test('when it drops the results of tools', () => {
    expect(() => hermes(good.replace('+ message.content +', '+'))).toThrow('leaves out what a tool said');
  });

  test('when it drops calls', () => {
    expect(() => hermes(good.replace('tool_call.name', "'f'"))).toThrow('leaves out tool calls');
  });

  test('when it frames a result by what went before', () => {
    const counting = good.replace("'\\n<tool_response>\\n'", "'\\n<tool_response>\\n' ~ loop.index");
    expect(() => hermes(counting)).toThrow('frames a result by what went before it');
  });

  test('when a turn that calls does not end', () => {
    const endless = good.replaceAll('<|im_end|>', '').replaceAll('<|im_start|>', '');
    expect(() => hermes(endless)).toThrow('ends a turn that calls with none of <|im_end|>, <|endoftext|>');
  });

  test('when only Python could print what it prints', () => {
    expect(() => hermes(`{{ messages }}${good}`)).toThrow('it should use tojson');
  });

  test('when it asks the day in a way that nobody knows', () => {
    expect(() => hermes(`{{ strftime_now('%Q') }}${good}`)).toThrow('strftime_now does not know %Q');
  });
});

test('special tokens of tokenizer_config.json may be objects', () => {
  const config = {
    ...configOf('llama', 'llama3.1-like'),
    bos_token: { content: '<|begin_of_text|>', lstrip: false },
  };
  const tokenizer = tokenizerOf('llama');
  const prompt = openDialect(tokenizer, config, []).promptTokens([{ role: 'user', content: 'Hi' }]);
  expect(prompt[0]).toBe(tokenizer.idOf('<|begin_of_text|>'));
});

test('what nobody forges is tokenized as Python does it', () => {
  const { cases, tools, named, date } = renderingsOf('llama');
  const tokenizer = tokenizerOf('llama');
  const same = cases.filter(
    ({ template, messages, variables }) =>
      template === 'llama3.2-like' && messages.length === 1 && Object.keys(variables).length === 0,
  );
  expect(same.length).toBeGreaterThan(10);
  for (const one of same) {
    const config = {
      ...named,
      chat_template: templateOf(one.template),
      gradus_dialect: { name: 'llama3', date },
    };
    const described = one.tools.map((name) => tools[name]!.function);
    expect(openDialect(tokenizer, config, described).promptTokens(one.messages)).toEqual(one.ids);
  }
});
