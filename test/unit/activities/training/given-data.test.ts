import { expect, test } from 'vitest';
import { givenExample } from '../../../../activities/training/given-examples.ts';
import { readGivenLine } from '../../../../core/schema/given-line.ts';
import { ORDER_ALONE } from '../../../../activities/training/given-sequence.ts';
import { DIALECTS } from '../../engine/dialect/every-dialect.ts';
import { dialect, tokenizer } from '../test-environment.ts';
import { call, result, user } from './given-messages.ts';

const sequenceOf = (line: unknown) =>
  givenExample(
    { where: 'data.jsonl, line 3', line: readGivenLine(JSON.stringify(line)) },
    () => dialect,
    Infinity,
    undefined,
  )[0]!;
const answer = { role: 'assistant', content: 'far' };

test('is what an expert who had said the same would have shown, with only the assistant masked in', () => {
  const { tokens, mask, streams } = sequenceOf({ messages: [user, call, result, answer], weight: 0.5 });
  expect(tokenizer.decode(tokens)).toBe(
    '<|im_start|>user\nFind 0<|im_end|>\n<|im_start|>assistant\n' +
      '<tool_call>{"name":"search","arguments":{"query":"moon"}}</tool_call>' +
      '<tool_response>it is far</tool_response><answer>far</answer>',
  );
  expect(tokenizer.decode(tokens.filter((_, i) => mask[i] === 1))).toBe(
    '<tool_call>{"name":"search","arguments":{"query":"moon"}}</tool_call><answer>far</answer>',
  );
  expect(streams.advantages).toEqual(mask.map((bit) => bit * 0.5));
});

test('a message of weight 0 is read and not trained', () => {
  const { tokens, mask } = sequenceOf({ messages: [user, { ...call, weight: 0 }, result, answer] });
  expect(tokenizer.decode(tokens.filter((_, i) => mask[i] === 1))).toBe('<answer>far</answer>');
});

const twice = {
  ...call,
  tool_calls: ['moon', 'sun'].map((query, i) => ({
    id: 'ab'[i],
    function: { name: 'search', arguments: JSON.stringify({ query }) },
  })),
};
const told = (id: string, content: string) => ({ role: 'tool', tool_call_id: id, content });

test('results of several calls are read in the order of the calls, whatever order they stand in', () => {
  const [hermes, qwen] = DIALECTS['hermes']!;
  const given = (...results: object[]) =>
    givenExample(
      {
        where: 'data.jsonl, line 3',
        line: readGivenLine(JSON.stringify({ messages: [user, twice, ...results, answer] })),
      },
      () => hermes,
      Infinity,
      undefined,
    )[0]!;
  const { tokens, mask } = given(told('b', 'near'), told('a', 'far'));
  expect(qwen.decode(tokens)).toContain(
    '<tool_response>\nfar\n</tool_response>\n<tool_response>\nnear\n</tool_response>',
  );
  expect(given(told('a', 'far'), told('b', 'near'))).toEqual(given(told('b', 'near'), told('a', 'far')));
  const trained = qwen.decode(tokens.filter((_, i) => mask[i] === 1));
  expect(trained.match(/<tool_call>/gu)).toHaveLength(2);
  expect(trained).not.toContain('tool_response');
  expect(() => given(told('b', 'near'))).toThrow(
    'goes on after 2 calls in one message with 1 of their results',
  );
});

test('several calls are refused in a dialect that has one a turn, of a model from scratch as well', () => {
  const line = { messages: [user, twice, told('a', 'far'), told('b', 'near'), answer] };
  expect(() => sequenceOf(line)).toThrow('A turn of gradus ends with its call, and one with 2 calls');
  const placed = { where: 'data.jsonl, line 3', line: readGivenLine(JSON.stringify(line)) };
  expect(() => givenExample(placed, () => ORDER_ALONE, Infinity, undefined)).toThrow(
    'A turn of gradus ends with its call, and one with 2 calls',
  );
});

test.each([
  [
    'a conversation that goes on after an answer',
    [user, answer, user, answer],
    'an episode ends with its answer',
  ],
  ['a call without a result', [user, call, answer], 'without a message of role tool'],
  ['a result without a call', [user, answer, result], 'after one without a call'],
  ['no prompt', [answer], 'a prompt is missing'],
  [
    'what the dialect cannot write',
    [user, { role: 'assistant', content: 'a</answer>b' }],
    'cannot be written in the dialect',
  ],
])('%s is refused with its line', (_, messages, why) => {
  expect(() => sequenceOf({ messages })).toThrow('data.jsonl, line 3');
  expect(() => sequenceOf({ messages })).toThrow(why);
});

test('a preference is nothing to imitate, and neither is what is labelled false', () => {
  expect(() => sequenceOf({ prompt: 'a', chosen: 'b', rejected: 'c' })).toThrow('is a preference');
  expect(() => sequenceOf({ prompt: 'a', completion: 'b', label: false })).toThrow('is labelled false');
  // Others keep something else under this name.
  expect(sequenceOf({ prompt: 'a', completion: 'b', label: 'sums' })).toEqual(
    sequenceOf({ prompt: 'a', completion: 'b', label: true }),
  );
});
