import { describe, expect, test } from 'vitest';
import { LineProblem, readGivenLine } from '../../../../core/schema/given-line.ts';

const read = (line: unknown) => readGivenLine(JSON.stringify(line));
const said = (role: string, content: string, trained = role === 'assistant') => ({ role, content, trained });
const user = { role: 'user', content: 'Find 7' };
const call = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'a', type: 'function', function: { name: 'search', arguments: '{"query":"moon"}' } }],
};
const calling = {
  ...said('assistant', ''),
  call: { name: 'search', arguments: { query: 'moon' } },
};

describe('the shapes of the field', () => {
  test("OpenAI's messages, with tools, calls, and messages that are left out of the loss", () => {
    const messages = [
      { role: 'developer', content: [{ type: 'text', text: 'Be short.' }] },
      user,
      { ...call, weight: 0 },
      { role: 'tool', tool_call_id: 'a', content: 'far' },
      { role: 'assistant', content: '7' },
    ];
    const tools = [{ type: 'function', function: { name: 'search', description: 'Looks.', parameters: {} } }];
    expect(read({ messages, tools, weight: 2 })).toEqual({
      kind: 'demonstration',
      weight: 2,
      tools: [{ name: 'search', description: 'Looks.', parameters: {} }],
      messages: [
        said('system', 'Be short.'),
        said('user', 'Find 7'),
        { ...calling, trained: false },
        said('tool', 'far'),
        said('assistant', '7'),
      ],
    });
  });

  test("TRL's prompt and completion, plain and conversational", () => {
    const plain = read({ prompt: 'Find 7', completion: '7' });
    expect(plain).toEqual({
      kind: 'demonstration',
      weight: 1,
      messages: [said('user', 'Find 7'), said('assistant', '7')],
    });
    const chat = read({ prompt: [user], completion: [{ role: 'assistant', content: '7' }] });
    expect(chat).toEqual(plain);
    expect(read({ prompt: 'Find 7', completion: '7', label: false })).toEqual({ ...plain, label: false });
    // What the assistant said before is a part of the prompt.
    const longer = read({ prompt: [user, call, { role: 'tool', content: 'far' }], completion: '7' });
    expect(longer).toMatchObject({ messages: [{}, { trained: false }, {}, { trained: true }] });
  });

  test("TRL's preferences, with the prompt and with what both begin with", () => {
    const answers = { chosen: '7', rejected: '8' };
    const plain = read({ prompt: 'Find 7', ...answers });
    expect(plain).toEqual({
      kind: 'preference',
      weight: 1,
      prompt: [said('user', 'Find 7')],
      chosen: [said('assistant', '7')],
      rejected: [said('assistant', '8')],
    });
    const implicit = Object.fromEntries(
      Object.entries(answers).map(([side, content]) => [side, [user, { role: 'assistant', content }]]),
    );
    expect(read(implicit)).toEqual(plain);
  });

  test('a trajectory of ATIF', () => {
    const steps = [
      { step_id: 1, source: 'user', message: 'Find 7' },
      {
        step_id: 2,
        source: 'agent',
        message: '',
        tool_calls: [{ tool_call_id: 'a', function_name: 'search', arguments: { query: 'moon' } }],
        observation: { results: [{ source_call_id: 'a', content: 'far' }] },
      },
      { step_id: 3, source: 'agent', message: '7' },
    ];
    expect(
      read({ schema_version: 'ATIF-v1.7', session_id: 's', agent: { name: 'a', version: '1' }, steps }),
    ).toEqual({
      kind: 'demonstration',
      weight: 1,
      messages: [said('user', 'Find 7'), calling, said('tool', 'far'), said('assistant', '7')],
    });
  });
});

const answer = { role: 'assistant', content: '7' };
const twoCalls = {
  ...call,
  tool_calls: [
    ...call.tool_calls,
    { id: 'b', type: 'function', function: { name: 'search', arguments: '{"query":"sun"}' } },
  ],
};
const told = (id: string, content: string) => ({ role: 'tool', tool_call_id: id, content });

describe('several calls in a message', () => {
  const { call: first, ...silent } = calling;
  const calls = [first, { name: 'search', arguments: { query: 'sun' } }];
  const turn = { ...silent, calls };
  const result = (content: string, answers: number) => ({ ...said('tool', content), answers });

  test('are one turn, and their results are known by their ids, in whatever order they stand', () => {
    const messages = [user, twoCalls, told('b', 'near'), told('a', 'far'), answer];
    expect(read({ messages })).toMatchObject({
      messages: [said('user', 'Find 7'), turn, result('near', 1), result('far', 0), said('assistant', '7')],
    });
  });

  test('have their results in order where these name no call, beside those that do', () => {
    const messages = [user, twoCalls, { role: 'tool', content: 'near' }, told('a', 'far'), answer];
    expect(read({ messages })).toMatchObject({
      messages: [{}, turn, result('near', 1), result('far', 0), {}],
    });
  });

  test('of a prompt may be answered by what follows it', () => {
    const completion = [told('b', 'near'), told('a', 'far'), answer];
    const behind = [result('near', 1), result('far', 0), said('assistant', '7')];
    expect(read({ prompt: [user, twoCalls], completion })).toMatchObject({
      messages: [{}, { ...turn, trained: false }, ...behind],
    });
    expect(read({ prompt: [user, twoCalls], chosen: completion, rejected: '8' })).toMatchObject({
      prompt: [{}, { ...turn, trained: false }],
      chosen: behind,
    });
  });

  test('are those of a step in a trajectory of ATIF', () => {
    const made = ['moon', 'sun'].map((query, i) => ({
      tool_call_id: 'ab'[i],
      function_name: 'search',
      arguments: { query },
    }));
    const results = [
      { source_call_id: 'b', content: 'near' },
      { source_call_id: 'a', content: 'far' },
    ];
    const steps = [
      { source: 'user', message: 'Find 7' },
      { source: 'agent', message: '', tool_calls: made, observation: { results } },
      { source: 'agent', message: '7' },
    ];
    expect(read({ schema_version: 'ATIF-v1.7', steps })).toMatchObject({
      messages: [said('user', 'Find 7'), turn, result('near', 1), result('far', 0), said('assistant', '7')],
    });
  });
});

const nested = '['.repeat(100_000) + ']'.repeat(100_000);
test.each([
  ['no JSON', '{"messages": [', 'is not JSON in the line'],
  ['a list', '[]', 'is no JSON object'],
  ['none of the shapes', '{"text": "7"}', 'has none of "messages"'],
  ['deep nesting', `{"messages": ${nested}}`, 'nests the line deeper'],
  [
    'deep nesting in arguments',
    JSON.stringify({
      messages: [user, { ...call, tool_calls: [{ function: { name: 'search', arguments: nested } }] }],
    }),
    'nests the arguments of a call deeper',
  ],
  [
    'a role that nobody knows',
    JSON.stringify({ messages: [{ role: 'asistant', content: '7' }] }),
    'did you mean "assistant"',
  ],
  ['nothing of the assistant', JSON.stringify({ messages: [user] }), 'has nothing that the assistant said'],
  [
    'two calls of one id',
    JSON.stringify({ messages: [user, { ...call, tool_calls: [...call.tool_calls, ...call.tool_calls] }] }),
    'has two calls of the id "a" in one message',
  ],
  [
    'a second result of one of two calls',
    JSON.stringify({ messages: [user, twoCalls, told('b', 'near'), told('b', 'far'), answer] }),
    'has a second result of the call "b"',
  ],
  [
    'more results than calls',
    JSON.stringify({
      messages: [user, twoCalls, told('b', 'near'), told('a', 'far'), { role: 'tool', content: 'so' }],
    }),
    'has 3 results behind a message with 2 calls',
  ],
  [
    'a result of neither of two calls',
    JSON.stringify({ messages: [user, twoCalls, told('c', 'near'), told('a', 'far'), answer] }),
    'has a result of the call "c" behind a message that makes "a", "b"',
  ],
  [
    'a result of another call',
    JSON.stringify({ messages: [user, call, { role: 'tool', tool_call_id: 'b', content: 'far' }, answer] }),
    'has a result of the call "b" behind a message that makes "a": let tool_call_id name',
  ],
  [
    'a result of an earlier call, in what follows a prompt',
    JSON.stringify({
      prompt: [user, call, { role: 'tool', tool_call_id: 'a', content: 'far' }],
      completion: [
        { ...call, tool_calls: [{ ...call.tool_calls[0], id: 'b' }] },
        { role: 'tool', tool_call_id: 'a', content: 'far' },
        answer,
      ],
    }),
    'has a result of the call "a" behind a message that makes "b"',
  ],
  [
    'a result of another call in a preference',
    JSON.stringify({
      prompt: [user, call],
      chosen: [{ role: 'tool', tool_call_id: 'b', content: 'far' }, answer],
      rejected: '8',
    }),
    'has a result of the call "b"',
  ],
  [
    'a result of another call in a trajectory of ATIF',
    JSON.stringify({
      schema_version: 'ATIF-v1.7',
      steps: [
        { source: 'user', message: 'Find 7' },
        {
          source: 'agent',
          message: '',
          tool_calls: [{ tool_call_id: 'a', function_name: 'search', arguments: {} }],
          observation: { results: [{ source_call_id: 'b', content: 'far' }] },
        },
      ],
    }),
    'has a result of the call "b"',
  ],
  [
    'an image',
    JSON.stringify({ messages: [{ role: 'user', content: [{ type: 'image_url' }] }, answer] }),
    'messages.0.content',
  ],
  ['a weight of zero', JSON.stringify({ messages: [user, answer], weight: 0 }), 'weight'],
  ['no prompt of a preference', JSON.stringify({ chosen: 'a', rejected: 'b' }), 'has no prompt'],
  [
    'a preference for the same',
    JSON.stringify({ prompt: 'a', chosen: 'b', rejected: 'b' }),
    'the same in chosen and rejected',
  ],
  ['no messages', '{"messages": []}', 'messages'],
  [
    'a key that is there twice',
    '{"prompt": "a", "completion": "good", "completion": "evil"}',
    'has the key "completion" twice in one object',
  ],
  [
    'a key that is there twice, once as an escape',
    '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "c\\u006fntent": "b", "content": "c"}]}',
    'has the key "content" twice',
  ],
  [
    'an argument that is there twice',
    JSON.stringify({
      messages: [user, { ...call, tool_calls: [{ function: { name: 'f', arguments: '{"a":1,"a":2}' } }] }],
    }),
    'has the key "a" twice',
  ],
  ['half a character in a prompt', '{"prompt": "a\\ud83e", "completion": "b"}', 'has half a character'],
  [
    'a weight between',
    JSON.stringify({ messages: [user, { ...answer, weight: 0.5 }] }),
    'messages.1.weight: must be 0 or 1',
  ],
  [
    'a number as content',
    JSON.stringify({ messages: [{ role: 'user', content: 3 }, answer] }),
    'messages.0.content: must be text',
  ],
])('%s is refused, and says why', (_, line, why) => {
  expect(() => readGivenLine(line)).toThrow(LineProblem);
  expect(() => readGivenLine(line)).toThrow(why);
});

test('what only looks like a key that is there twice, or like half a character, is taken', () => {
  const text = '{"a": 1, "a": 2}, \\ud83e and "';
  const twice = { role: 'assistant', content: text };
  expect(
    read({ messages: [user, twice], extra: [{ a: 1 }, { a: { a: 2 } }], a: ['b', 'b', 'a'] }),
  ).toMatchObject({
    messages: [{}, { content: text }],
  });
  expect(readGivenLine('{"prompt": "\\ud83e\\udd80", "completion": "b"}')).toMatchObject({
    messages: [{ content: '🦀' }, {}],
  });
});
