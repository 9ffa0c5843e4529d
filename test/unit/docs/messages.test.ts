import { expect, test } from 'vitest';
import { longSentences, OLD_WORDS } from '../../support/sentences.ts';
import { writtenTexts } from '../../support/written-texts.ts';

const ROOMS =
  'activities cli core dashboard engine environments infra plugins runs spec store workers workflows'.split(
    ' ',
  );
const texts = new Map(ROOMS.map((room) => [room, writtenTexts(room)]));

test('errors, descriptions and texts of pages are found', () => {
  const all = [...texts.values()].flat();
  expect(all.length).toBeGreaterThan(1000);
  const message = all.map(({ text }) => text).join('\n');
  expect(message).toContain('No sandbox works on this machine, and nothing is run without one.');
  expect(message).toContain('Reinforcement learning. The default.');
  expect(message).toContain('Skip to the page');
  expect(message).toContain('Runs servers and workers until Ctrl-C.');
});

test.each(ROOMS)('no sentence that %s shows has more than 35 words', (room) => {
  const long = texts.get(room)!.flatMap(({ at, text }) => longSentences(text).map((one) => ({ at, ...one })));
  expect(long).toEqual([]);
});

test.each(ROOMS)('%s shows the words of the field', (room) => {
  const old = texts
    .get(room)!
    // A name between back-ticks or quotes is that of a field.
    .map(({ at, text }) => ({ at, words: text.replaceAll(/`[^`]*`|"[^"]*"/gu, '').match(OLD_WORDS) }))
    .filter(({ words }) => words !== null);
  expect(old).toEqual([]);
});
