import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readDeepseek } from '../../../../engine/dialect/deepseek.ts';
import { openDialect } from '../../../../engine/dialect/open-dialect.ts';
import { actionOf } from '../../../../engine/dialect/spoken-turn.ts';
import { configOf, renderingsOf, tokenizerOf } from './fixtures.ts';

const json = '{"expression": "12+7"}';
const call = { name: 'calculator', arguments: { expression: '12+7' } };
const fenced = `<｜tool▁call▁begin｜>function<｜tool▁sep｜>calculator\n\`\`\`json\n${json}\n\`\`\`<｜tool▁call▁end｜>`;
const bare = `<｜tool▁call▁begin｜>calculator<｜tool▁sep｜>${json}<｜tool▁call▁end｜>`;
const all = (...calls: string[]): string => `<｜tool▁calls▁begin｜>${calls.join('\n')}<｜tool▁calls▁end｜>`;
const parse = (text: string) => actionOf(readDeepseek(text));

describe('a turn in the dialect of DeepSeek', () => {
  test.each<[string, string]>([
    ['in a fence', all(fenced)],
    ['without a fence', all(bare)],
    ['after a thought that the prompt opened', `so I add\n</think>\n\n${all(fenced)}`],
    ['after a thought of its own and text', `<think>\nadd\n</think>\n\nI add.${all(bare)}\n`],
  ])('may call %s', (_, text) => expect(parse(text)).toEqual({ kind: 'call', call }));

  test('may have several calls, with a thought and text', () => {
    expect(readDeepseek(`add\n</think>\n\nBoth. ${all(fenced, bare)}`)).toEqual({
      thought: 'add',
      text: 'Both.',
      calls: [call, call],
    });
    expect(parse(all(fenced, bare))).toEqual({ kind: 'malformed', reason: 'one call a turn' });
  });

  test('answers where it calls nothing', () => {
    expect(parse('so\n</think>\n\n19')).toEqual({ kind: 'answer', answer: '19' });
    expect(parse(' 19 ')).toEqual({ kind: 'answer', answer: '19' });
  });

  test.each<[string, string]>([
    ['<｜tool▁calls▁begin｜>', 'unclosed <｜tool▁calls▁begin｜>'],
    [all(), 'no call behind <｜tool▁calls▁begin｜>'],
    [all('f'), '<｜tool▁call▁begin｜> is missing'],
    [all('<｜tool▁call▁begin｜>f'), 'unclosed <｜tool▁call▁begin｜>'],
    [all('<｜tool▁call▁begin｜>f<｜tool▁call▁end｜>'), 'a call has <｜tool▁sep｜> once'],
    [all('<｜tool▁call▁begin｜>f<｜tool▁sep｜>{<｜tool▁call▁end｜>'), 'call is not JSON'],
    [all('<｜tool▁call▁begin｜>f<｜tool▁sep｜>3<｜tool▁call▁end｜>'), 'arguments are not an object'],
    [`${all(bare)} so`, 'text after <｜tool▁calls▁end｜>'],
    ['<think>\nso', 'unclosed <think>'],
    ['<｜tool▁output▁begin｜>19', 'unexpected <｜tool▁output▁begin｜>'],
    ['a</think>b</think>c', 'unexpected </think>'],
    [' ', 'no call and no answer'],
  ])('%# that is malformed says why', (text, reason) =>
    expect(parse(text)).toEqual({ kind: 'malformed', reason }),
  );

  test('is read without an error, whatever it is', () => {
    const tags = ['calls▁begin', 'calls▁end', 'call▁begin', 'call▁end', 'sep'].map(
      (tag) => `<｜tool▁${tag}｜>`,
    );
    const piece = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(...tags, fenced, bare, 'function', '\n```json\n', '</think>', '{', '}'),
    );
    fc.assert(fc.property(fc.array(piece), (pieces) => void parse(pieces.join(''))));
  });
});

describe.each([
  ['deepseek-r1-like', `\n</think>\n\n${all(fenced)}`],
  ['deepseek-v3.1-like', all(bare)],
])('the dialect of a checkpoint with the template %s', (template, written) => {
  const tokenizer = tokenizerOf('deepseek');
  const { cases, tools } = renderingsOf('deepseek');
  const dialect = openDialect(tokenizer, configOf('deepseek', template), [tools['calculator']!.function]);

  test('writes a call as the template does, and reads it back', () => {
    expect(dialect.turnText({ call })).toBe(`${written}<｜end▁of▁sentence｜>`);
    expect(dialect.parse(tokenizer.decode(dialect.turnTokens({ call })))).toEqual({ kind: 'call', call });
    expect(dialect.parse(dialect.turnText({ think: 'add', answer: '19' }))).toEqual({
      kind: 'answer',
      answer: '19',
    });
  });

  test('tells several results as the template does, behind which the turn goes on', () => {
    const { text } = cases.find((one) => one.name === 'two results' && one.template === template)!;
    const results = ['noon', '2'].map((content) => ({ role: 'tool' as const, content }));
    const told = tokenizer.decode(dialect.messageTokens(results, ''));
    expect(told).toContain('noon');
    expect(text!.endsWith(`<｜tool▁calls▁end｜><｜end▁of▁sentence｜>${told}`)).toBe(true);
  });

  test('writes the calls that an agent sends back as its template does', () => {
    const { text, messages } = cases.find((one) => one.name === 'two results' && one.template === template)!;
    const asObjects = messages.map((message) => ({
      ...message,
      ...(message.tool_calls && {
        tool_calls: message.tool_calls.map((one) => ({
          ...one,
          function: {
            ...one.function,
            arguments: JSON.parse(one.function.arguments as string) as object as never,
          },
        })),
      }),
    }));
    const spoken = openDialect(tokenizer, configOf('deepseek', template), []);
    expect(tokenizer.decode(spoken.promptTokens(asObjects))).toBe(text);
  });
});
