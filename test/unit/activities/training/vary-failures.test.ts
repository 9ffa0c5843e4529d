import { describe, expect, test } from 'vitest';
import type { MadeTaskRef } from '../../../../core/refs.ts';
import type { RewardSpec } from '../../../../core/schema/reward.ts';
import { checkedVariations } from '../../../../activities/training/vary-failures.ts';
import { calculatorEnvironment } from '../../../../environments/families/calculator/environment.ts';
import { webShopEnvironment } from '../../../../environments/families/web-shop/environment.ts';
import type { Environment } from '../../../../environments/contract/environment.ts';
import { inThisProcess } from '../../../../environments/host/hosted-environment.ts';
import { openDialect } from '../../../../engine/dialect/open-dialect.ts';
import { tokenizer } from '../../../support/fixture-tokenizer.ts';

const { signal } = new AbortController();
const rewardBy = (verifier: string): RewardSpec => ({
  components: [{ verifier, role: 'outcome', weight: 1, gatedBy: null }],
  truncated: 'train',
});
const limits = { maxTurns: 12, maxCompletionTokens: 2000 };

const refs = (environment: string, level: number, count: number): MadeTaskRef[] =>
  Array.from({ length: count }, (_, index) => ({ environment, split: 'train', level, index }));

function check(
  environment: Environment,
  verifier: string,
  over: { levels?: number[]; failed?: MadeTaskRef[]; limits?: typeof limits; seed?: number } = {},
) {
  const levels = over.levels ?? [1, 2];
  const failed = over.failed ?? levels.flatMap((level) => refs(environment.name, level, 6));
  return checkedVariations(
    inThisProcess([environment]),
    ({ tools }) =>
      openDialect(
        tokenizer,
        { dialect: 'gradus' },
        tools.map(({ described }) => described),
      ),
    failed.map((ref) => ({ ref, successes: 0, trials: 4 })),
    {
      run: 'run',
      seed: over.seed ?? 1,
      stage: 'phase-2',
      arms: levels.map((level) => ({ environment: environment.name, level })),
      variations: 6,
      reward: rewardBy(verifier),
      limits: over.limits ?? limits,
    },
    { signal },
  );
}
type Checked = Awaited<ReturnType<typeof check>>;
const kinds = ({ failed }: Checked): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const { kind } of failed.flatMap(({ variations }) => variations))
    counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
};
const askedInTest = async (environment: Environment, levels: number[]): Promise<Set<string>> => {
  const prompts = new Set<string>();
  for (const split of ['heldout', 'test'] as const)
    for (const level of levels)
      for (let index = 0; index < 400; index++)
        prompts.add((await environment.task({ environment: environment.name, split, level, index })).prompt);
  return prompts;
};

describe.each([
  ['calculator', calculatorEnvironment(), 'exact-match'],
  ['web-shop', webShopEnvironment(), 'environment'],
])('variations of %s', (_, environment, verifier) => {
  test('are tasks whose experts pass, each once, and none that is held out', async () => {
    const checked = await check(environment, verifier);
    const { failed, tasks, references } = checked;
    expect(failed).toHaveLength(12);
    expect(tasks.length).toBeGreaterThan(10);
    expect(new Set(tasks.map(({ canonical }) => canonical)).size).toBe(tasks.length);
    // 40 % of all problems are held out, and a variation is one of them as often.
    expect(kinds(checked)['set-aside']).toBeGreaterThan(5);
    const heldOut = await askedInTest(environment, [1, 2]);
    for (const [i, task] of references.tasks.entries()) {
      expect(heldOut.has(task.prompt)).toBe(false);
      expect(task.ref).toMatchObject({ split: 'train', made: [tasks[i]!.proposal] });
      const { mask, tokens, outcome } = references.episodes[i]!;
      expect(mask).toHaveLength(tokens.length);
      // A critic says at the first of its tokens what it expects of the first state.
      expect(mask[0]).toBe(1);
      expect(outcome).toMatchObject({ kind: 'scored', reward: 1 });
    }
  });

  test('are the same each time, and others by another seed', async () => {
    const few = { levels: [1], failed: refs(environment.name, 1, 3) };
    const one = await check(environment, verifier, few);
    expect(one.tasks.length).toBeGreaterThan(2);
    expect(await check(environment, verifier, few)).toEqual(one);
    expect((await check(environment, verifier, { ...few, seed: 2 })).tasks).not.toEqual(one.tasks);
  });

  test('that an episode has no room for are left out', async () => {
    const none = await check(environment, verifier, {
      levels: [2],
      limits: { maxTurns: 1, maxCompletionTokens: 2000 },
    });
    expect(none.tasks).toEqual([]);
    expect(none.failed[0]!.variations.find(({ kind }) => kind === 'unsolved')).toMatchObject({
      reason: expect.stringMatching(/more than an episode has/) as string,
    });
  });
});

test('an environment that is wrong about a split gets no task that measures into training', async () => {
  const honest = calculatorEnvironment();
  // Its variations are held-out and test tasks, and it says that they are of train.
  const leaking: Environment = {
    ...honest,
    vary: (_, index) => {
      const split = index % 2 === 0 ? ('heldout' as const) : ('test' as const);
      const ref = { environment: 'calculator', split, level: 1, index: index % 300 };
      const info = honest.task(ref).info!;
      return { kind: 'task', proposal: info, canonical: String(index % 300) + split, split: 'train' };
    },
  };
  const bare = await check(leaking, 'exact-match', { levels: [1] });
  const heldOut = await askedInTest(honest, [1]);
  expect(kinds(bare)['set-aside']).toBeGreaterThan(5);
  // A story is told with other names; its numbers are those of a problem that only its own split may have.
  expect(bare.references.tasks.filter(({ prompt }) => heldOut.has(prompt))).toEqual([]);
});

test('what the expert does not solve, and what the environment does not make, is told and not kept', async () => {
  const honest = calculatorEnvironment();
  const wrong: Environment = {
    ...honest,
    demonstrate: (task, index) => {
      const { turns, weight } = honest.demonstrate(task, index);
      return { turns: [...turns.slice(0, -1), { answer: 'nobody knows' }], weight };
    },
  };
  const unsolved = await check(wrong, 'exact-match');
  expect(unsolved.tasks).toEqual([]);
  expect(kinds(unsolved)['unsolved']).toBeGreaterThan(10);
  const throwing: Environment = {
    ...honest,
    vary: () => {
      throw new Error('no idea');
    },
  };
  const none = await check(throwing, 'exact-match');
  expect(kinds(none)).toEqual({ none: 72 });
  expect(none.failed[0]!.variations[0]).toMatchObject({
    reason: expect.stringContaining('no idea') as string,
  });
});
