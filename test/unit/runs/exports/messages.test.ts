import { expect, test } from 'vitest';
import { madeGroup, madeSpec } from '../../../support/made-run.ts';
import type { Episode, Turn } from '../../../../core/episode/episode.ts';
import { messagesLine, messagesOf, turnTextOf } from '../../../../runs/exports/messages.ts';

const call: Turn['action'] = { kind: 'call', call: { name: 'search', arguments: { query: 'x' } } };

test.each<[string, string, Turn['action'], { thought: string | null; content: string }]>([
  [
    'of hermes',
    '<think>\nfirst\n</think>\n\nI look.\n<tool_call>\n{"name":"search","arguments":{"query":"x"}}\n</tool_call><|im_end|>',
    call,
    { thought: 'first', content: 'I look.' },
  ],
  [
    'whose thought the prompt has opened',
    'first</think><tool_call>{}</tool_call>',
    call,
    { thought: 'first', content: '' },
  ],
  [
    'of llama3',
    '{"name":"search","parameters":{"query":"x"}}<|eot_id|>',
    call,
    { thought: null, content: '' },
  ],
  ['of search-r1', 'I must look. <search>x</search>', call, { thought: null, content: 'I must look.' }],
  ['of retool', 'Let it run:\n```python\nx\n```', call, { thought: null, content: 'Let it run:' }],
  [
    'that answers',
    '<think>a</think><answer>4</answer>',
    { kind: 'answer', answer: '4' },
    { thought: 'a', content: '4' },
  ],
  [
    'that is neither',
    '<think><tool_call>{<|im_end|>',
    { kind: 'malformed', reason: 'r' },
    { thought: null, content: '<think><tool_call>{' },
  ],
])('a turn %s is told without the signs of its dialect', (_, text, action, said) => {
  expect(turnTextOf({ text, action })).toEqual(said);
});

test('a conversation has a result behind its call, and a mistake is told as a person would', () => {
  const episode = {
    turns: [
      {
        start: 0,
        end: 1,
        text: '<tool_call>{',
        action: { kind: 'malformed', reason: 'r' },
        observation: { text: 'error: r' },
      },
      { start: 1, end: 2, text: '<tool_call>{}</tool_call>', action: call, observation: { text: 'found' } },
      { start: 2, end: 3, text: '<answer>4</answer>', action: { kind: 'answer', answer: '4' } },
    ],
  } as unknown as Episode;
  const task = { ref: {} as never, prompt: 'Find it.', promptTokens: [] };
  expect(messagesOf({ task, episode })).toEqual([
    { role: 'user', content: 'Find it.' },
    { role: 'assistant', content: '<tool_call>{' },
    { role: 'user', content: 'error: r' },
    {
      role: 'assistant',
      content: '',
      tool_calls: [
        { id: 'call_2', type: 'function', function: { name: 'search', arguments: '{"query":"x"}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'call_2', name: 'search', content: 'found' },
    { role: 'assistant', content: '4' },
  ]);
});

test('a line is one line, with what the episode was worth and where it is', () => {
  const group = madeGroup({ steps: 2, groups: 1, samples: 2 }, 2, 0);
  const [task] = group.tasks;
  task!.prompt = 'two\nlines\u2028of it';
  const [episode] = group.episodes;
  const place = { run: 'made', stage: 'rl', step: 2, group: 0, episode: 0 };
  const line = messagesLine({ place, group, task: task!, episode: episode! }, madeSpec('made').reward);
  expect(line).not.toContain('\n');
  expect(JSON.parse(line)).toMatchObject({
    place: 'made/rl/2/0/0',
    task: task!.ref,
    turns: episode!.turns.map(({ text }) => text),
    messages: messagesOf({ task: task!, episode: episode! }),
  });
});

test('a turn with several calls has the result of each behind it, as far as they were made', () => {
  const episode = {
    turns: [
      {
        start: 1,
        end: 2,
        text: 'Both. <tool_call>{}</tool_call><tool_call>{}</tool_call>',
        action: {
          kind: 'calls',
          calls: [
            { name: 'search', arguments: { query: 'x' } },
            { name: 'now', arguments: {} },
            { name: 'now', arguments: {} },
          ],
        },
        observation: { text: 'found\nnoon', done: true },
        results: [{ text: 'found' }, { text: 'noon', reward: 1 }],
      },
    ],
  } as unknown as Episode;
  const task = { ref: {} as never, prompt: 'Find it.', promptTokens: [] };
  const named = (id: string, name: string, given: string) => ({
    id,
    type: 'function',
    function: { name, arguments: given },
  });
  expect(messagesOf({ task, episode })).toEqual([
    { role: 'user', content: 'Find it.' },
    {
      role: 'assistant',
      content: 'Both.',
      tool_calls: [
        named('call_1', 'search', '{"query":"x"}'),
        named('call_1_2', 'now', '{}'),
        named('call_1_3', 'now', '{}'),
      ],
    },
    { role: 'tool', tool_call_id: 'call_1', name: 'search', content: 'found' },
    { role: 'tool', tool_call_id: 'call_1_2', name: 'now', content: 'noon' },
  ]);
});

test('calls that an agent made itself stand beside the conversation', () => {
  const group = madeGroup({ steps: 2, groups: 1, samples: 2 }, 2, 0);
  const episode = group.episodes[0]!;
  const place = { run: 'made', stage: 'rl', step: 2, group: 0, episode: 0 };
  const line = () =>
    JSON.parse(messagesLine({ place, group, task: group.tasks[0]!, episode }, madeSpec('made').reward)) as {
      calls?: unknown;
    };
  expect(line()).not.toHaveProperty('calls');
  episode.calls = [
    {
      call: { name: 'search', arguments: { query: 'x' } },
      observation: { text: 'found', seconds: 2, reward: 1 },
    },
    {
      call: { name: 'serch', arguments: 3 },
      observation: { text: 'error: no serch', error: 'unknown-tool' },
    },
  ];
  expect(line().calls).toEqual([
    { name: 'search', arguments: { query: 'x' }, content: 'found', error: null, seconds: 2, reward: 1 },
    {
      name: 'serch',
      arguments: 3,
      content: 'error: no serch',
      error: 'unknown-tool',
      seconds: null,
      reward: null,
    },
  ]);
});
