import { Duplex } from 'node:stream';
import { expect, test } from 'vitest';
import { Channel } from '../../../../environments/host/channel.ts';

/** What a channel makes of the given pieces of bytes, and what it says itself. */
function channelOver(pieces: string[], longestLine?: number, mark = '') {
  const heard: unknown[] = [];
  const nonsense: string[] = [];
  let text = '';
  const socket = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _, done) => {
      text += chunk.toString();
      done();
    },
  });
  const channel = new Channel(
    socket,
    { message: (value) => heard.push(value), nonsense: (why) => nonsense.push(why) },
    { mark, ...(longestLine !== undefined && { longestLine }) },
  );
  for (const piece of pieces) socket.emit('data', piece);
  return { channel, heard, nonsense, said: () => text };
}

test('hears messages wherever they are cut', () => {
  const text = '[1]\n{"a":"\\n"}\n';
  for (let cut = 0; cut <= text.length; cut++) {
    const { heard, nonsense } = channelOver([text.slice(0, cut), text.slice(cut)]);
    expect(heard).toEqual([[1], { a: '\n' }]);
    expect(nonsense).toEqual([]);
  }
});

test('says lines', () => {
  const { channel, said } = channelOver([]);
  channel.say(JSON.stringify(['a\nb']));
  expect(said()).toBe('["a\\nb"]\n');
});

test('hears nothing after what is no JSON', () => {
  expect(channelOver(['[1]\nready\n[2]\n', '[3]\n'])).toMatchObject({
    heard: [[1]],
    nonsense: ['sent what is no JSON'],
  });
});

test('does not collect a line without end', () => {
  expect(channelOver(['x'.repeat(60), 'x'.repeat(60), 'x'], 100)).toMatchObject({
    heard: [],
    nonsense: ['sent more than 100 characters at once'],
  });
});

test('hears only lines that bear the mark', () => {
  expect(channelOver(['k7[1]\n', '[2]\n', 'k7[3]\n'], undefined, 'k7')).toMatchObject({
    heard: [[1]],
    nonsense: ['sent what is none of its own messages'],
  });
});

test.each(['__proto__', '\\u005f_proto\\u005F_'])('makes no prototype of a key %s', (key) => {
  const { heard } = channelOver([`{"a":{"${key}":{"done":true},"text":"\\"__proto__\\":"}}\n`]);
  expect(heard).toEqual([{ a: { text: '"__proto__":' } }]);
  expect(Object.keys((heard[0] as { a: object }).a)).toEqual(['text']);
});
