import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseLlama3, readLlama3 } from '../../../../engine/dialect/llama3.ts';
import { openDialect } from '../../../../engine/dialect/open-dialect.ts';
import { configOf, renderingsOf, tokenizerOf } from './fixtures.ts';

const good = '{"name": "calculator", "parameters": {"expression": "1+2"}}';
const parsed = { kind: 'call', call: { name: 'calculator', arguments: { expression: '1+2' } } };
const huge = 'x'.repeat(1_000_000);

describe('a turn in the dialect of Llama 3', () => {
  test.each<[string, string, object]>([
    ['a call', good, parsed],
    ['a call after the python tag', `<|python_tag|>${good}`, parsed],
    ['a call with white space around it', `\n ${good} \n`, parsed],
    ['a call that says arguments', good.replace('parameters', 'arguments'), parsed],
    ['a call with a type', good.replace('{"name"', '{"type": "function", "name"'), parsed],
    [
      'a call whose parameters are a string of JSON',
      '{"name":"calculator","parameters":"{\\"expression\\":\\"1+2\\"}"}',
      parsed,
    ],
    [
      'braces and quotes in a call',
      '{"name":"f","parameters":{"a":"}{\\"}é🦀"}}',
      { kind: 'call', call: { name: 'f', arguments: { a: '}{"}é🦀' } } },
    ],
    [
      'a huge call',
      `{"name":"f","parameters":{"a":"${huge}"}}`,
      { kind: 'call', call: { name: 'f', arguments: { a: huge } } },
    ],
    ['an answer', '\n\n3 ', { kind: 'answer', answer: '3' }],
    ['an answer with braces', 'the set {1, 2}', { kind: 'answer', answer: 'the set {1, 2}' }],
  ])('is %s', (_, text, action) => expect(parseLlama3(text)).toEqual(action));

  test.each<[string, string]>([
    ['{"name": "f", "parameters": {', 'call is not JSON'],
    ['{1, 2}', 'call is not JSON'],
    [`${good}; ${good}`, 'one call a turn'],
    [`${good}\n${good}`, 'one call a turn'],
    [`<|python_tag|>${good}<|python_tag|>${good}`, 'one call a turn'],
    [`[${good}]`, 'one call a turn, not a list'],
    [`${good} is what I call`, 'text after the call'],
    [`${good};`, 'text after the call'],
    [`I call ${good}`, 'text before the call: a turn that calls is nothing but the call'],
    ['<|python_tag|>print(1)', 'call is not JSON'],
    ['<|python_tag|>', 'call is not JSON'],
    ['{"parameters": {}}', 'call has no name'],
    ['{"name": "f"}', 'call has no parameters'],
    ['{"name": "f", "parameters": 3}', 'parameters are not an object'],
    ['{"name": "f", "parameters": "x"}', 'parameters are a string that is not JSON'],
    ['<|start_header_id|>user', 'unexpected <|start_header_id|>'],
    [' ', 'no call and no answer'],
    [`{"a":"${huge}`, 'call is not JSON'],
  ])('%# that is malformed says why', (text, reason) =>
    expect(parseLlama3(text)).toEqual({ kind: 'malformed', reason }),
  );

  test.each<[string, string]>([
    ['after each other', `${good}; ${good}`],
    ['on lines of their own', `${good}\n${good}`],
    ['each after a tag', `<|python_tag|>${good}<|python_tag|>${good}`],
    ['all after one tag', `<|python_tag|>${good}, ${good}`],
    ['in a list', `[${good}, ${good}]`],
  ])('may have several calls, %s', (_, text) => {
    const call = { name: 'calculator', arguments: { expression: '1+2' } };
    expect(readLlama3(text)).toEqual({ thought: '', text: '', calls: [call, call] });
  });

  test.each([`${good}; ${good};`, `${good} and ${good}`, `[${good}, 3]`, `${good}; {"name"`, `[${good}`])(
    'with several calls of which one is none does not parse: %#',
    (text) => expect(readLlama3(text)).toBeUndefined(),
  );

  test('is read without an error, whatever it is', () => {
    const piece = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('{', '}', '"', '\\', '[{', good, '<|python_tag|>'),
    );
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const text = pieces.join('');
        const action = parseLlama3(text);
        const read = readLlama3(text);
        if (action.kind === 'call') expect(read!.calls).toEqual([action.call]);
      }),
    );
  });
});

describe.each<[string, string]>([
  ['llama3.1-like', '"19 <b>\\n"'],
  ['llama3.2-like', '19 <b>'],
])('the dialect of a checkpoint with the template %s', (template, result) => {
  const { tools } = renderingsOf('llama');
  const tokenizer = tokenizerOf('llama');
  const dialect = openDialect(tokenizer, configOf('llama', template), [tools['calculator']!.function]);

  test('is chosen for its template, and describes the tools in the prompt', () => {
    expect(dialect.name).toBe('llama3');
    const prompt = tokenizer.decode(dialect.promptTokens([{ role: 'user', content: 'What is 1+2?' }]));
    expect(prompt).toContain('Does one exact operation');
    expect(prompt.endsWith('What is 1+2?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n')).toBe(
      true,
    );
  });

  test('tells the results of several calls one after the other', () => {
    const results = ['3', '5'].map((content) => ({ role: 'tool' as const, content }));
    const text = tokenizer.decode(dialect.messageTokens(results, `${good}; ${good}<|eot_id|>`));
    expect(text.split('ipython').length - 1).toBe(2);
    expect(text.indexOf('3')).toBeLessThan(text.lastIndexOf('5'));
    expect(text.endsWith('<|start_header_id|>assistant<|end_header_id|>\n\n')).toBe(true);
  });

  test('tells the day that the run was given, whatever day it is', () => {
    const today = (date?: string): string => {
      const config = {
        ...configOf('llama', 'llama3.2-like'),
        gradus_dialect: { name: 'llama3', ...(date && { date }) },
      };
      return tokenizer.decode(
        openDialect(tokenizer, config, []).promptTokens([{ role: 'user', content: 'x' }]),
      );
    };
    expect(today()).toContain('Today: 26 Jul 2024, Friday, day 208 of 2024');
    expect(today('2026-01-01')).toContain('Today: 01 Jan 2026, Thursday, day 001 of 2026');
  });

  test('gives a result the ipython role, framed as the template does', () => {
    expect(tokenizer.decode(dialect.observationTokens({ text: '19 <b>\n' }, ''))).toBe(
      `<|start_header_id|>ipython<|end_header_id|>\n\n${result}<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n`,
    );
  });

  test('reads back what it writes, as the template writes it', () => {
    const turn = { think: 'dropped', call: { name: 'calculator', arguments: { expression: '12+7' } } };
    expect(dialect.turnText(turn)).toBe(
      '{"name": "calculator", "parameters": {"expression": "12+7"}}<|eot_id|>',
    );
    expect(dialect.parse(tokenizer.decode(dialect.turnTokens(turn)))).toEqual({
      kind: 'call',
      call: turn.call,
    });
    expect(dialect.parse(dialect.turnText({ answer: '19' }))).toEqual({ kind: 'answer', answer: '19' });
    expect(() => dialect.turnText({ answer: '{"a": 1}' })).toThrow('would read as {"kind":"malformed"');
  });

  test('ends a turn with any of the family’s end tokens', () => {
    expect(dialect.stopTokens).toEqual(
      ['<|eot_id|>', '<|eom_id|>', '<|end_of_text|>'].map((token) => tokenizer.idOf(token)),
    );
    expect(dialect.parse('19<|eom_id|>')).toEqual({ kind: 'answer', answer: '19' });
  });
});
