import { expect, test } from 'vitest';
import { FAMILY_CASES } from '../../../bench/families.ts';
import { builtInEnvironments } from '../../../environments/families/index.ts';

test.each(FAMILY_CASES)(
  '$name is measured at levels that its environment has',
  ({ name: environment, played }) => {
    const found = builtInEnvironments.find(({ name }) => name === environment);
    expect(found?.levels).toEqual(expect.arrayContaining([...played]));
  },
);
