import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { openDialect } from '../../../../engine/dialect/open-dialect.ts';
import { pythonCall, readPythonCalls } from '../../../../engine/dialect/python-calls.ts';
import { readPythonic } from '../../../../engine/dialect/pythonic.ts';
import { actionOf } from '../../../../engine/dialect/spoken-turn.ts';
import { configOf, renderingsOf, tokenizerOf } from './fixtures.ts';

const parse = (text: string) => actionOf(readPythonic(text));
const called = (given: object) => ({ kind: 'call', call: { name: 'f', arguments: given } });
const huge = 'x'.repeat(1_000_000);

describe('a turn with calls as Python writes them', () => {
  test.each<[string, object]>([
    ['[f()]', {}],
    [` [ f ( a = 1 , b = -2.5e3 , ) , ] \n`, { a: 1, b: -2500 }],
    [
      `[f(a='it\\'s', b="\\"é\\u00e9\\x41\\U0001f980\\n\\q")]`,
      { a: "it's", b: '"éé🦀\n\\q'.replace('éé', 'ééA') },
    ],
    [
      '[f(a=True, b=False, c=None, d=true, e=false, g=null)]',
      { a: true, b: false, c: null, d: true, e: false, g: null },
    ],
    [`[f(a=[1, [2], ()], b={'k': {"l": (1, 2)}})]`, { a: [1, [2], []], b: { k: { l: [1, 2] } } }],
    ['<|python_start|>[f(a=1_000)]<|python_end|>', { a: 1000 }],
    ['<|python_tag|>[f(a=.5)]', { a: 0.5 }],
    [`[f(a="${huge}")]`, { a: huge }],
    [`[f(__proto__=1)]`, JSON.parse('{"__proto__": 1}') as object],
  ])('%# is a call', (text, given) => expect(parse(text)).toEqual(called(given)));

  test.each<[string, string]>([
    ['[f(1)]', 'an argument of f has no name'],
    ['[f(a=1, a=2)]', 'f has the argument a twice'],
    ['[f(a=x)]', 'x)] is no value'],
    ['[f(a=1', ', is missing before the end'],
    ['[f(a="x', 'unclosed "'],
    ['[f(a=1)] and so on', 'text after the calls'],
    ['[f(a=1), 3]', 'a call has no name'],
    ['[f(a=1) g()]', ', is missing before g()]'],
    ['[f(a=1e999)]', '1e999 is too large'],
    ['[f(a="\\ud83e")]', 'a text has half a character'],
    ['[f(a="\\U00110000")]', '\\U00110000 is no character'],
    [`[f(a=${'['.repeat(200)}1${']'.repeat(200)})]`, 'arguments are deeper than 100 levels'],
    ['[f(a=1), g()]', 'one call a turn'],
    ['<|python_tag|>', 'no call and no answer'],
    ['so <|python_start|>[f()]', 'unexpected <|python_start|>'],
  ])('%# that is malformed says why', (text, reason) =>
    expect(parse(text)).toMatchObject({
      kind: 'malformed',
      reason: expect.stringContaining(reason) as string,
    }),
  );

  test.each(['3', '[1, 2]', '[]', 'f(a=1)', 'the list [f(a=1)]'])('%s is an answer', (text) =>
    expect(parse(text)).toEqual({ kind: 'answer', answer: text }),
  );

  test('may have several calls, in order', () => {
    expect(readPythonic(`[f(a=1), g.h(b='x'), f()]`)).toEqual({
      thought: '',
      text: '',
      calls: [
        { name: 'f', arguments: { a: 1 } },
        { name: 'g.h', arguments: { b: 'x' } },
        { name: 'f', arguments: {} },
      ],
    });
  });

  test('whatever is written is read back, and nothing is read with an error of its own', () => {
    const given = fc.dictionary(fc.stringMatching(/^[a-z_][a-z0-9_]{0,5}$/), fc.jsonValue(), { maxKeys: 3 });
    fc.assert(
      fc.property(fc.array(given, { minLength: 1, maxLength: 3 }), (all) => {
        const calls = all.map((each) => ({
          name: 'f',
          arguments: JSON.parse(JSON.stringify(each)) as object,
        }));
        const text = `[${calls.map((call) => pythonCall(call as never)).join(', ')}]`;
        expect(readPythonCalls(text)).toEqual(calls);
      }),
    );
    const piece = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        '[',
        ']',
        '(',
        ')',
        '{',
        '}',
        "'",
        '"',
        '\\',
        '=',
        ',',
        'f(',
        'a=',
        '1',
        '\\x',
        '<|python_tag|>',
      ),
    );
    fc.assert(fc.property(fc.array(piece), (pieces) => void parse(pieces.join(''))));
  });
});

describe('the dialect pythonic', () => {
  const tokenizer = tokenizerOf('pythonic');
  const config = { ...configOf('pythonic', 'pythonic-like'), gradus_dialect: { name: 'pythonic' } };
  const dialect = openDialect(tokenizer, config, [renderingsOf('pythonic').tools['calculator']!.function]);

  test('writes a call as its template does, and tells results in the role ipython', () => {
    const call = { name: 'calculator', arguments: { expression: '12+7' } };
    const { text } = renderingsOf('pythonic').cases.find(({ name }) => name === 'two results')!;
    expect(text).toContain('[now(), calculator(expression="1+1")]<|eot_id|>');
    expect(dialect.turnText({ call })).toBe('[calculator(expression="12+7")]<|eot_id|>');
    expect(dialect.parse(dialect.turnText({ call }))).toEqual({ kind: 'call', call });
    const results = ['3', '5'].map((content) => ({ role: 'tool' as const, content }));
    const between = tokenizer.decode(dialect.messageTokens(results, ''));
    expect(between).toBe(
      '<|start_header_id|>ipython<|end_header_id|>\n\n3<|eot_id|><|start_header_id|>ipython<|end_header_id|>\n\n5<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
    );
    // Behind the turn, the very text of the template.
    const told = renderingsOf('pythonic').cases.find(({ name }) => name === 'two results')!.text!;
    const answers = ['noon', '2'].map((content) => ({ role: 'tool' as const, content }));
    expect(told.endsWith(tokenizer.decode(dialect.messageTokens(answers, '')))).toBe(true);
  });

  test('speaks with the template of Llama 3, too, where the spec says so', () => {
    const llama = { ...configOf('llama', 'llama3.2-like'), gradus_dialect: { name: 'pythonic' } };
    const spoken = openDialect(tokenizerOf('llama'), llama, []);
    expect(spoken.read!('[f(a=1), g()]<|eot_id|>')!.calls).toHaveLength(2);
  });

  test('cannot write a name that Python has none for', () => {
    expect(dialect.canWrite({ call: { name: 'get-user', arguments: {} } })).toBe(false);
    expect(() => dialect.turnText({ call: { name: 'f', arguments: { 'a b': 1 } } })).toThrow(
      'Python has none for',
    );
  });
});
