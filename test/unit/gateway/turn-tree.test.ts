import { expect, test } from 'vitest';
import type { ChatMessage } from '../../../engine/dialect/contract.ts';
import type { StoredTurn } from '../../../gateway/stored-turn.ts';
import { TurnTree } from '../../../gateway/turn-tree.ts';

const user = (content: string): ChatMessage => ({ role: 'user', content });
const said = (content: string): ChatMessage => ({ role: 'assistant', content });
const tool = { name: 'add', description: '', parameters: {} };

const turn = (id: string, parent: string | null, more: Partial<StoredTurn>): StoredTurn => ({
  id,
  parent,
  asked: 'asked',
  ordinal: 0,
  tools: [],
  messages: [user('a')],
  observed: [1, 2],
  tokens: [3, 4],
  samplerLogprobs: [-1, -2],
  finish: 'stop',
  text: 'b',
  answer: said('b'),
  created: 0,
  ...more,
});

function treeOf(...turns: StoredTurn[]): TurnTree {
  const tree = new TurnTree();
  turns.forEach((one) => tree.add(one));
  return tree;
}

test('a request goes on after the longest path that it extends', () => {
  const tree = treeOf(
    turn('1', null, {}),
    turn('2', '1', { messages: [user('c')], answer: said('d') }),
    turn('3', null, { ordinal: 1, answer: said('other') }),
  );
  const placed = (...messages: ChatMessage[]) => tree.place(messages, []);
  expect(placed(user('a'), said('b'), user('c'), said(' d '), user('e'))).toEqual({
    parent: tree.get('2'),
    added: [user('e')],
  });
  expect(placed(user('a'), said('b'), user('x')).parent?.id).toBe('1');
  expect(placed(user('a'), said('other'), user('x')).parent?.id).toBe('3');
  expect(placed(user('a'))).toEqual({ parent: null, added: [user('a')] });
});

test('whoever rewrites what was said, or brings in turns of others, begins a branch', () => {
  const tree = treeOf(turn('1', null, { answer: { ...said('b'), reasoning_content: 'hm' } }));
  const parentOf = (messages: ChatMessage[], tools = [] as (typeof tool)[]) =>
    tree.place(messages, tools).parent;
  expect(parentOf([user('a'), said('b'), user('c')])?.id).toBe('1');
  expect(parentOf([user('a'), { ...said('b'), reasoning_content: 'hm' }, user('c')])?.id).toBe('1');
  expect(parentOf([user('a'), { ...said('b'), reasoning_content: 'oh' }, user('c')])).toBeNull();
  expect(parentOf([user('a'), said('B'), user('c')])).toBeNull();
  expect(parentOf([user('a'), said('b'), user('c')], [tool])).toBeNull();
  expect(parentOf([user('a'), said('b'), user('c'), said('of others'), user('d')])).toBeNull();
  expect(parentOf([user('a'), said('b')])).toBeNull();
});

test('a turn that was cut is followed by no tokens', () => {
  const tree = treeOf(turn('1', null, { finish: 'length' }));
  expect(tree.place([user('a'), said('b'), user('c')], []).parent).toBeNull();
});

test('a row is the tokens of its path: sampled ones in the mask, and each branch has one', () => {
  const tree = treeOf(
    turn('1', null, {}),
    turn('2', '1', { observed: [5], tokens: [6], samplerLogprobs: [-3] }),
    turn('3', '1', { ordinal: 1, observed: [5], tokens: [7], samplerLogprobs: [-4], kept: [[7, 8]] }),
  );
  const row = { promptTokens: [1, 2], mask: [1, 1, 0, 1] };
  expect(tree.rows()).toEqual([
    { ...row, tokens: [3, 4, 5, 6], samplerLogprobs: [-1, -2, 0, -3] },
    { ...row, tokens: [3, 4, 5, 7], samplerLogprobs: [-1, -2, 0, -4], kept: [[], [], [], [7, 8]] },
  ]);
});
