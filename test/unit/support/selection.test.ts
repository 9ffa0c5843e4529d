import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { LONG_UNITS, PROMISES } from '../../selection.ts';

// A path that is not there selects nothing, and nobody would notice.
test.each([
  ['integration', PROMISES],
  ['unit', LONG_UNITS],
])(
  'every %s test that the selection names is there',
  (folder, lists: readonly { paths: readonly string[] }[]) => {
    const named = lists.flatMap(({ paths }) => paths.map((one) => `test/${folder}/${one}`));
    expect(named.filter((one) => !existsSync(one))).toEqual([]);
  },
);
