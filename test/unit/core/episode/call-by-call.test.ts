import { expect, test } from 'vitest';
import { callByCall, joinedObservation } from '../../../../core/episode/call-by-call.ts';
import type { Turn } from '../../../../core/episode/episode.ts';

const at = { start: 3, end: 5, text: 't' };
const [f, g, h] = ['f', 'g', 'h'].map((name) => ({ name, arguments: {} }));

test('a turn with several calls is one turn for each, and any other turn is itself', () => {
  const turn: Turn = {
    ...at,
    action: { kind: 'calls', calls: [f!, g!, h!] },
    results: [{ text: '1' }, { text: '2', error: 'tool-error' }],
  };
  expect(callByCall(turn)).toEqual([
    { ...at, action: { kind: 'call', call: f }, observation: { text: '1' } },
    { ...at, action: { kind: 'call', call: g }, observation: { text: '2', error: 'tool-error' } },
    { ...at, action: { kind: 'call', call: h } },
  ]);
  const others: Turn[] = [
    { ...at, action: { kind: 'call', call: f! }, observation: { text: '1' } },
    { ...at, action: { kind: 'answer', answer: 'a' } },
    { ...at, action: { kind: 'malformed', reason: 'r' }, observation: { text: 'error: r' } },
  ];
  for (const other of others) expect(callByCall(other)).toEqual([other]);
});

test('what several calls brought is one text, with the sum of what can be added', () => {
  const image = { type: 'image' as const, mediaType: 'image/png', sha256: 'a', bytes: 1 };
  expect(joinedObservation([{ text: 'a' }, { text: 'b' }])).toEqual({ text: 'a\nb' });
  expect(
    joinedObservation([
      { text: 'a', seconds: 1, reward: 0 },
      { text: 'b', error: 'tool-error', reward: 0.5, images: [image] },
      { text: 'c', error: 'unknown-tool', seconds: 2, done: true, images: [image] },
    ]),
  ).toEqual({
    text: 'a\nb\nc',
    error: 'tool-error',
    seconds: 3,
    reward: 0.5,
    done: true,
    images: [image, image],
  });
});
