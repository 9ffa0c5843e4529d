import { expect, test } from 'vitest';
import { givenExample } from '../../../../activities/training/given-examples.ts';
import { readGivenLine } from '../../../../core/schema/given-line.ts';
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
