import { expect, test } from 'vitest';
import type { Split } from '../../../../core/refs.ts';
import { patched } from '../../../../environments/swe/patch.ts';
import { SMALL_LEVELS, smallBug } from '../../../../environments/swe/small/modules.ts';

test('no bug of one split is a bug of another, and each is mended by its patch', () => {
  const owner = new Map<string, Split>();
  for (const split of ['train', 'heldout', 'test'] as const) {
    for (const shape of SMALL_LEVELS) {
      for (let index = 0; index < 60; index++) {
        const bug = smallBug(shape, split, index);
        const { line } = bug;
        const key = `${line.name} ${line.wrong} ${line.right}`;
        if ((owner.get(key) ?? split) !== split) expect.fail(`${key} is in ${owner.get(key)} and ${split}`);
        owner.set(key, split);
        expect(patched(bug.tree, bug.mend).get('m.py')).toBe(
          bug.tree.get('m.py')!.replace(bug.wrong, bug.right),
        );
      }
    }
  }
});
