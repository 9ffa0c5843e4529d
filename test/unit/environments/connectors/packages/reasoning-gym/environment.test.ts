import { expect, test } from 'vitest';
import reasoningGym from '../../../../../../environments/connectors/packages/reasoning-gym/environment.ts';
import { python } from '../../../../../../environments/connectors/python/python.ts';
import type { FastVerifier } from '../../../../../../environments/contract/environment.ts';
import { tasksOf, withPackages } from '../../../../../support/ready-environments.ts';

const named = (dataset: string) => reasoningGym.find(({ name }) => name === `reasoning-gym-${dataset}`)!;
const { signal } = new AbortController();

/** What the verifier says of an answer. */
async function judged(dataset: string, answer: string | null, index = 0) {
  const environment = named(dataset);
  const task = await environment.task({ environment: environment.name, split: 'train', level: 1, index });
  const [verifier] = environment.verifiers as FastVerifier[];
  const status =
    answer === null
      ? { kind: 'truncated' as const, limit: 'turns' as const }
      : { kind: 'answered' as const, answer };
  const said = await verifier!.verify(
    { task, answer, tools: [], episode: { turns: [], status } },
    { signal },
  );
  return { task, score: said.kind === 'score' ? said.score : said.reason };
}

await withPackages('reasoning-gym', () => {
  const datasets = [
    'basic-arithmetic',
    'chain-sum',
    'spell-backward',
    'leg-counting',
    'simple-equations',
    'maze',
  ];

  test.each(datasets)('%s: no task is in two splits, and its own answers are right', async (dataset) => {
    const environment = named(dataset);
    const [verifier] = environment.verifiers as FastVerifier[];
    const splitOf = new Map<string, string>();
    for (const level of environment.levels) {
      for (const { split, task } of await tasksOf(environment, level, 8)) {
        expect(splitOf.get(task.prompt) ?? split).toBe(split);
        splitOf.set(task.prompt, split);
        const answer = task.answer!;
        const episode = { turns: [], status: { kind: 'answered' as const, answer } };
        expect(await verifier!.verify({ task, answer, tools: [], episode }, { signal })).toMatchObject({
          score: 1,
        });
      }
    }
  });

  test('where there are few questions, none comes twice', async () => {
    const environment = named('products');
    const tasks = await tasksOf(environment, 1, Infinity);
    expect(tasks).toHaveLength(100);
    expect(new Set(tasks.map(({ task }) => task.prompt)).size).toBe(100);
  });

  test('another process makes the same tasks', async () => {
    const again = python(
      new URL(
        '../../../../../../environments/connectors/packages/reasoning-gym/reasoning.py',
        import.meta.url,
      ),
      {
        requirements: new URL(
          '../../../../../../environments/connectors/packages/reasoning-gym/requirements.txt',
          import.meta.url,
        ),
        processes: 1,
      },
    );
    const { task } = await judged('chain-sum', '1');
    const { ref: _, ...rest } = task;
    expect(await again.call('task', ['chain_sum', 190, 'train', 1, 0])).toEqual(rest);
    await again.close();
  });

  test('wrong answers and none are wrong', async () => {
    expect(await judged('chain-sum', 'seven')).toMatchObject({ score: 0 });
    expect(await judged('chain-sum', null)).toMatchObject({ score: 0 });
  });

  test('what cannot be read, and what is no number, is as wrong as any other answer', async () => {
    for (const [dataset, answer] of [
      ['complex-arithmetic', 'nan'],
      ['complex-arithmetic', 'NaN + nanj'],
      ['prime-factorization', 'I do not know'],
      ['game-of-life', '{}'],
    ] as const) {
      expect(await judged(dataset, answer), dataset).toMatchObject({ score: 0 });
    }
    const { task } = await judged('complex-arithmetic', '0');
    expect(await judged('complex-arithmetic', task.answer!)).toMatchObject({ score: 1 });
  });

  test('what would be evaluated does nothing but calculate', async () => {
    for (const answer of [
      '__import__("os").system("true")',
      '[c for c in ().__class__.__base__.__subclasses__()]',
      '"".join(map(chr,[1]))',
      'exec(input())',
    ]) {
      for (const dataset of [
        'polynomial-multiplication',
        'simple-integration',
        'spiral-matrix',
        'binary-matrix',
      ]) {
        expect(await judged(dataset, answer)).toMatchObject({ score: 0 });
      }
    }
    expect(await judged('simple-integration', '9**9**9**9**9')).toMatchObject({ score: 0 });
    const { task } = await judged('simple-integration', 'x');
    expect(await judged('simple-integration', task.answer!)).toMatchObject({ score: 1 });
  });
});
