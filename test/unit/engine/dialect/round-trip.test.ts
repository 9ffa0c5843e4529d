import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { GradusError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json/json.ts';
import type { WrittenTurn } from '../../../../engine/dialect/contract.ts';
import { DIALECTS } from './every-dialect.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

const PIECES = [
  ...Array.from('<>{}[]"\\/` \n\té🦀'),
  '```',
  '```python\n',
  '\n```',
  '```python3\n',
  '\\boxed{',
  '\\boxed{3}',
  '{"name": "f", "parameters": {}}',
  '<think>',
  '</think>',
  'think>',
  '<tool_call>',
  '</tool_call>',
  '<tool_response>',
  '<answer>',
  '</answer>',
  '<search>',
  '</search>',
  '<code>',
  '</code>',
  '<information>',
  '</interpreter>',
  '<|python_tag|>',
  '<|im_end|>',
  '<|eot_id|>',
  '<|im_',
  'end|>',
  'cafe\u0301',
  '\ud83e',
  '\udd80',
  '\ufdd0',
  '\u0000',
  '\ufeff',
  '3',
];
const text = fc
  .array(fc.oneof(fc.constantFrom(...PIECES), fc.string({ unit: 'binary', maxLength: 3 })), { maxLength: 6 })
  .map((parts) => parts.join(''));
const args = fc.oneof(
  text.map((expression) => ({ expression })),
  fc.dictionary(text, fc.oneof(text, fc.double(), fc.jsonValue()), { maxKeys: 3 }),
);
const turn: fc.Arbitrary<WrittenTurn> = fc
  .tuple(
    fc.option(text, { nil: undefined }),
    fc.oneof(
      // Every dialect can write it, so that not all is refused.
      fc.nat().map((answer) => ({ answer: `${answer}` })),
      text.map((answer) => ({ answer })),
      args.map((given) => ({ call: { name: 'calculator', arguments: given as Json } })),
      fc.tuple(text, args).map(([name, given]) => ({ call: { name, arguments: given as Json } })),
    ),
  )
  .map(([think, action]) => ({ ...action, ...(think !== undefined && { think }) }));

/** What a turn says, as a reader should understand it. */
const said = ({ call, answer }: WrittenTurn) => (call ? { kind: 'call', call } : { kind: 'answer', answer });

describe.each(Object.entries(DIALECTS))(
  'a demonstrated turn in the dialect %s',
  (_, [dialect, tokenizer]) => {
    test('reads back as what it says, or is refused', () => {
      let written = 0;
      fc.assert(
        fc.property(turn, (turn) => {
          let tokens: number[];
          try {
            tokens = dialect.turnTokens(turn);
          } catch (error) {
            expect(error).toBeInstanceOf(GradusError);
            expect((error as GradusError).type).toBe('demonstration');
            return;
          }
          written++;
          expect(dialect.parse(tokenizer.decode(tokens))).toStrictEqual(said(turn));
        }),
        { numRuns: propertyRuns(400) },
      );
      // Refusing everything would do, too.
      expect(written).toBeGreaterThan(10);
    });

    test.each<[string, WrittenTurn]>([
      ['an empty answer', { answer: '' }],
      ['white space around the answer', { answer: '\n' }],
      ['a name that is empty', { call: { name: '', arguments: { expression: '1' } } }],
      ['an infinite argument', { call: { name: 'calculator', arguments: { expression: Infinity } } }],
      ['half a character', { answer: 'so \ud83e' }],
    ])('%s is refused', (_, turn) => {
      expect(() => dialect.turnTokens(turn)).toThrow(GradusError);
    });
  },
);

test.each<[string, WrittenTurn]>([
  ['retool', { think: 'as in\n```python\nprint(2)\n```', answer: '3' }],
  ['retool', { answer: 'a \\boxed{2}' }],
  ['retool', { call: { name: 'calculator', arguments: { expression: '' } } }],
  ['retool', { call: { name: 'calculator', arguments: { expression: 'print(1)\n' } } }],
  ['search-r1', { call: { name: 'calculator', arguments: { expression: ' ' } } }],
  ['search-r1', { call: { name: 'calculator', arguments: { expression: ' 1' } } }],
  ['search-r1', { answer: ' 3' }],
  ['hermes', { answer: '3\n' }],
  ['hermes', { answer: 'cafe\u0301' }],
  ['llama3', { answer: '{"a": 1}' }],
  ['llama3', { answer: ' 3' }],
])('%s cannot write %j, and says how it would read', (name, turn) => {
  expect(() => DIALECTS[name]![0].turnTokens(turn)).toThrow(/would read as|spell another text/u);
});

describe('what a policy writes is read as it stands', () => {
  test.each<[string, string, object]>([
    [
      'llama3',
      '{"name": "f", "parameters": {}}<|python_tag|>{"name": "g", "parameters": {}}',
      { kind: 'malformed', reason: 'text before <|python_tag|>' },
    ],
    ['llama3', 'Well.<|python_tag|>{"name": "g", "parameters": {}}', { kind: 'malformed' }],
    [
      'llama3',
      '{"name": "f", "parameters": {"a": 1e999}}',
      { kind: 'malformed', reason: 'call is not JSON' },
    ],
    ['hermes', '<tool_call>{"name": "f", "arguments": {"a": [-1e999]}}</tool_call>', { kind: 'malformed' }],
    [
      'hermes',
      '<tool_call>{"name": "f", "arguments": "{\\"a\\": 1e999}"}</tool_call>',
      { kind: 'malformed' },
    ],
    ['gradus', '<tool_call>{"name":"f","arguments":{"a":1e999}}</tool_call>', { kind: 'malformed' }],
    ['gradus', '<tool_call>{"name":"f","arguments":{"a":"\\ud800"}}</tool_call>', { kind: 'malformed' }],
    ['hermes', '<tool_call>{"name": "f", "arguments": {"\\udc00": 1}}</tool_call>', { kind: 'malformed' }],
    [
      'gradus',
      '<tool_call>{"name":"f","arguments":{"a":"\\ud83d\\ude00"}}</tool_call>',
      { kind: 'call', call: { name: 'f', arguments: { a: '😀' } } },
    ],
    [
      'hermes',
      `<tool_call>{"name": "f", "arguments": {"a": ${'['.repeat(3000)}${']'.repeat(3000)}}}</tool_call>`,
      { kind: 'malformed' },
    ],
    [
      'hermes',
      `<tool_call>{"name": "f", "arguments": {"a": ${'['.repeat(50)}${']'.repeat(50)}}}</tool_call>`,
      { kind: 'call' },
    ],
    ['hermes', '<think>a <</think>think> 3', { kind: 'answer', answer: 'think> 3' }],
    ['hermes', '<think>is it <</think>/think> 3', { kind: 'answer', answer: '/think> 3' }],
    [
      'retool',
      '<code>```python3\nprint(1)\n```</code>',
      { kind: 'call', call: { name: 'calculator', arguments: { expression: 'print(1)' } } },
    ],
    [
      'retool',
      'Let me see.\n```python3\nprint(1)\n```',
      { kind: 'call', call: { name: 'calculator', arguments: { expression: 'print(1)' } } },
    ],
  ])('%s: %j', (name, text, action) => {
    expect(DIALECTS[name]![0].parse(text)).toMatchObject(action);
  });
});

describe.each(['search-r1', 'retool'])('a result in the dialect %s', (name) => {
  const [dialect, tokenizer] = DIALECTS[name]!;
  const after = (turn: string): string => tokenizer.decode(dialect.observationTokens({ text: 'hm' }, turn));

  test('follows within the message, where the turn has not ended it', () => {
    expect(after('<search>1</search>')).toMatch(/^\n\n<(information|interpreter)>hm<\/\1>\n\n$/u);
  });

  test('comes in a message of its own, and opens another, where the turn has ended its message', () => {
    expect(after('I do not know.<|im_end|>')).toMatch(
      /^\n<\|im_start\|>user\n<(information|interpreter)>hm<\/\1><\|im_end\|>\n<\|im_start\|>assistant\n$/u,
    );
  });
});
