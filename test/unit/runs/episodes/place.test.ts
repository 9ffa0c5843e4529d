import { assert, integer, property, record, stringMatching } from 'fast-check';
import { expect, test } from 'vitest';
import { parsePlace, placeOf } from '../../../../runs/episodes/place.ts';

const name = stringMatching(/^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/).filter((text) => text.length < 64);
const number = integer({ min: 0, max: 999_999_999 });
/** Those of asynchronous stages are long. */
const groupNumber = integer({ min: 0, max: 2 ** 49 - 1 });

test('a place is read back as it was written, names with dots as well', () => {
  const places = record({ run: name, stage: name, step: number, group: groupNumber, episode: number });
  assert(
    property(places, (place) => {
      expect(parsePlace(placeOf(place))).toEqual(place);
    }),
  );
  expect(parsePlace('demo/levels-1-3.held-out/000020/0/63')).toEqual({
    run: 'demo',
    stage: 'levels-1-3.held-out',
    step: 20,
    group: 0,
    episode: 63,
  });
});

test.each([
  ['demo/rl/1/0', /4 parts and not five/],
  ['demo', /1 part and not five/],
  ['runs/demo/rl/1/0/0', /6 parts/],
  ['demo/rl/one/0/0', /its step "one" is no whole number/],
  ['demo/rl/1/-1/0', /its group "-1"/],
  ['demo/rl/1/0/1e3', /its episode "1e3"/],
  ['demo/rl/1/0/', /its episode ""/],
  ['demo/rl/1234567890/0/0', /its step "1234567890"/],
  ['demo/rl/1/1234567890123456/0', /its group "1234567890123456"/],
  ['demo/../1/0/0', /letters, digits/],
  ['/rl/1/0/0', /letters, digits/],
  ['demo/a b/1/0/0', /letters, digits/],
])('%s is refused by the part that is wrong', (text, why) => {
  expect(() => parsePlace(text)).toThrow(why);
});
