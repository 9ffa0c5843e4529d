import { expect, test } from 'vitest';
import type { Split } from '../../../../../core/refs.ts';
import type { Environment, Task } from '../../../../../environments/contract/environment.ts';
import {
  miniwobEnvironment,
  problemAt,
  simpleMiniwobEnvironment,
} from '../../../../../environments/families/miniwob/environment.ts';
import { PAGES, TRAIN_ONLY } from '../../../../../environments/families/miniwob/levels.ts';

const refs = (environment: Environment, split: Split) =>
  environment.levels.flatMap((level) =>
    Array.from({ length: 120 }, (_, index) => ({ environment: environment.name, split, level, index })),
  );

test.each([miniwobEnvironment(), simpleMiniwobEnvironment()])(
  'pages of $name that look the same for all seeds are in train alone, and no seed is in two splits',
  (environment) => {
    const owner = new Map<string, Split>();
    const trained = new Set<string>();
    for (const split of ['train', 'heldout', 'test'] as const) {
      for (const ref of refs(environment, split)) {
        const { page, seed } = problemAt(ref);
        const key = `${page} ${seed}`;
        expect(owner.get(key) ?? split, key).toBe(split);
        owner.set(key, split);
        if (split === 'train') trained.add(page);
        else expect(TRAIN_ONLY).not.toContain(page);
      }
    }
    for (const page of TRAIN_ONLY) expect(trained).toContain(page);
  },
);

test('no level has the page whose delays are shorter than what a call takes', () => {
  expect(PAGES.flat()).toHaveLength(129);
  expect(PAGES.flat()).not.toContain('button-delay');
});

test('a prompt does not tell the page or its seed', () => {
  const environment = simpleMiniwobEnvironment();
  const prompts = refs(environment, 'train').map((ref) => (environment.task(ref) as Task).prompt);
  expect(new Set(prompts).size).toBe(1);
});
