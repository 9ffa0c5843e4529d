import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ChatMessage } from '../../../engine/dialect/contract.ts';
import { resultsInOrder } from '../../../gateway/answered-calls.ts';
import { Problem } from '../../../gateway/problem.ts';

const user: ChatMessage = { role: 'user', content: 'a task' };
const calling = (...ids: string[]): ChatMessage => ({
  role: 'assistant',
  content: '',
  tool_calls: ids.map((id) => ({ type: 'function', id, function: { name: 'add', arguments: {} } })),
});
const result = (id: string | undefined, content = `of ${id}`): ChatMessage => ({
  role: 'tool',
  content,
  ...(id !== undefined && { tool_call_id: id }),
});

test('results come in the order of the calls that they answer, whatever order they are sent in', () => {
  const ids = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 5 });
  const shuffled = ids.chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all)));
  fc.assert(
    fc.property(fc.array(shuffled, { minLength: 1, maxLength: 3 }), (turns) => {
      const sent = turns.flatMap(([ids, answered]) => [
        calling(...ids),
        ...answered.map((id) => result(id)),
        user,
      ]);
      const expected = turns.flatMap(([ids, answered]) => [
        calling(...ids),
        ...ids.filter((id) => answered.includes(id)).map((id) => result(id)),
        user,
      ]);
      expect(resultsInOrder([user, ...sent])).toEqual([user, ...expected]);
    }),
  );
});

test('a result without an id answers the first call that no other one does', () => {
  const messages = [
    user,
    calling('a', 'b', 'c'),
    result(undefined, 'one'),
    result('a'),
    result(undefined, 'two'),
  ];
  expect(resultsInOrder(messages).map(({ content }) => content)).toEqual([
    'a task',
    '',
    'of a',
    'one',
    'two',
  ]);
});

test.each<[string, ChatMessage[], RegExp]>([
  [
    'of a call that nobody made',
    [user, calling('a'), result('b')],
    /the call "b", and the turn before it has made a:/,
  ],
  [
    'of a call of an earlier turn',
    [user, calling('a'), result('a'), calling('b'), result('a')],
    /has made b:/,
  ],
  ['behind a turn without calls', [user, { role: 'assistant', content: 'so' }, result('a')], /calls nothing/],
  ['before every turn', [result('a'), user], /calls nothing/],
  ['of a call that has one', [user, calling('a', 'b'), result('a'), result('a')], /the call "a"/],
  ['too many', [user, calling('a'), result(undefined), result(undefined)], /answers no call/],
])('a result %s is refused with 400, and says why', (_, messages, why) => {
  const refused = (): unknown => resultsInOrder(messages);
  expect(refused).toThrow(Problem);
  expect(refused).toThrow(why);
});
