import { assert, infiniteStream, integer, nat, property, record } from 'fast-check';
import { expect, test } from 'vitest';
import { chooseInTime } from '../../../../core/training/groups-in-flight.ts';

interface Group {
  name: number;
  begunAfter: number;
  ended: boolean;
}

const choose = (groups: Group[], step: number, maxStaleness: number, count = 2): number[] | null =>
  chooseInTime(groups, { count, step, maxStaleness })?.map(({ name }) => name) ?? null;

test('the oldest of those that have ended', () => {
  const groups = [0, 1, 2, 3].map((name) => ({ name, begunAfter: 0, ended: name !== 1 }));
  expect(choose(groups, 1, 1)).toEqual([0, 2]);
});

test('waits for one that no later step could take, though enough others are there', () => {
  const groups = [
    { name: 0, begunAfter: 0, ended: false },
    { name: 1, begunAfter: 1, ended: true },
    { name: 2, begunAfter: 1, ended: true },
  ];
  expect(choose(groups, 2, 1)).toBeNull();
  groups[0]!.ended = true;
  expect(choose(groups, 2, 1)).toEqual([0, 1]);
});

test('waits as soon as later steps would have too many to take', () => {
  // Both steps up to 3 have room for four; all five are due by 3.
  const groups = [0, 1, 2, 3].map((name) => ({ name, begunAfter: 1, ended: name === 3 }));
  const fresh = [4, 5].map((name) => ({ name, begunAfter: 2, ended: true }));
  expect(choose([...groups, ...fresh], 2, 1)).toBeNull();
  groups[2]!.ended = true;
  expect(choose([...groups, ...fresh], 2, 1)).toEqual([2, 3]);
});

/** Groups begin whenever there is room, end in any order, and steps take them: none is ever too old. */
test('no group is ever older than allowed, whatever ends when, and every step gets its groups', () => {
  const course = record({
    maxStaleness: integer({ min: 0, max: 4 }),
    count: integer({ min: 1, max: 5 }),
    inFlight: integer({ min: 1, max: 30 }),
    ends: infiniteStream(nat()),
  });
  assert(
    property(course, ({ maxStaleness, count, inFlight, ends }) => {
      const steps = 12;
      let groups: Group[] = [];
      let name = 0;
      for (let step = 1; step <= steps; step++) {
        const last = Math.min(step + maxStaleness, steps);
        const fill = (taken: number): void => {
          while (
            groups.length < (last - taken) * count &&
            groups.filter(({ ended }) => !ended).length < inFlight
          )
            groups.push({ name: name++, begunAfter: step - 1, ended: false });
        };
        const endOne = (taken: number): void => {
          const running = groups.filter(({ ended }) => !ended);
          if (running.length > 0) running[ends.next().value! % running.length]!.ended = true;
          fill(taken);
        };
        fill(step - 1);
        let chosen = chooseInTime(groups, { count, step, maxStaleness });
        for (; chosen === null; chosen = chooseInTime(groups, { count, step, maxStaleness }))
          endOne(step - 1);
        expect(chosen).toHaveLength(count);
        for (const { begunAfter } of chosen) expect(step - 1 - begunAfter).toBeLessThanOrEqual(maxStaleness);
        groups = groups.filter((one) => !chosen.includes(one));
        // While the learner works.
        fill(step);
        for (let more = ends.next().value! % 4; more > 0; more--) endOne(step);
      }
      expect(groups).toEqual([]);
    }),
  );
});
