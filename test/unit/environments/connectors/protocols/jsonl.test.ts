import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Split } from '../../../../../core/refs.ts';
import type { Environment } from '../../../../../environments/contract/environment.ts';
import { jsonl } from '../../../../../environments/connectors/protocols/jsonl.ts';
import type { JsonlChoices } from '../../../../../environments/connectors/protocols/jsonl.ts';
import type { Row } from '../../../../../environments/connectors/protocols/rows.ts';

let folder: string;
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-jsonl-'));
});
afterAll(() => rm(folder, { recursive: true }));

const written = async (text: string): Promise<string> => {
  const file = path.join(folder, `${++files}.jsonl`);
  await writeFile(file, text);
  return file;
};
const rowsOf = (rows: readonly Row[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
const sums = (count: number): Row[] =>
  Array.from({ length: count }, (_, i) => ({
    question: `${i} + ${i}?`,
    answer: `so it is #### ${2 * i}`,
    hops: 1 + (i % 3),
  }));
const make = (file: string, more: Partial<JsonlChoices> = {}): Environment =>
  jsonl({ name: 'sums', path: file, prompt: 'question', ...more });
const SPLITS: readonly Split[] = ['train', 'heldout', 'test'];
const promptsOf = async (environment: Environment, split: Split, level = 1): Promise<string[]> =>
  Promise.all(
    Array.from({ length: environment.taskCount(split, level) }, async (_, index) => {
      const { prompt } = await environment.task({ environment: 'sums', split, level, index });
      return prompt;
    }),
  );

test('every row is a task of one split, in shares that hold wherever it stands, and the version is the digest of the file', async () => {
  const rows = sums(1000);
  const text = rowsOf(rows);
  const file = await written(text);
  const environment = make(file, { answer: (row) => (row['answer'] as string).replace(/.*#### /u, '') });
  expect(environment.version).toBe(`sha256:${createHash('sha256').update(text).digest('hex')}`);
  const prompts = await Promise.all(SPLITS.map(async (split) => promptsOf(environment, split)));
  expect(prompts.flat().toSorted()).toEqual(rows.map(({ question }) => question as string).toSorted());
  for (const shared of [prompts[1]!.length, prompts[2]!.length])
    expect(Math.abs(shared - 100)).toBeLessThan(40);
  const turned = make(await written(rowsOf(rows.toReversed())));
  for (const [i, split] of SPLITS.entries())
    expect((await promptsOf(turned, split)).toSorted()).toEqual(prompts[i]!.toSorted());
  const task = await environment.task({ environment: 'sums', split: 'train', level: 1, index: 3 });
  expect(task).toMatchObject({
    answer: expect.stringMatching(/^\d+$/u) as string,
    info: { hops: expect.any(Number) as number },
  });
  const verify = environment.verifiers[0]!;
  if (verify.tier !== 'fast') throw new Error('it is fast');
  const candidate = {
    task,
    episode: { turns: [], status: { kind: 'answered' as const, answer: task.answer! } },
    answer: task.answer!,
    tools: [],
  };
  expect(await verify.verify(candidate, new AbortController())).toMatchObject({ score: 1 });
});

test('columns say split and level; rows of no split are left out', async () => {
  const rows = sums(30).map((row, i): Row => ({
    ...row,
    part: ['train', 'validation', 'test', 'draft'][i % 4]!,
  }));
  const split = { column: 'part', train: ['train'], heldout: ['validation', 'dev'], test: ['test'] };
  const environment = make(await written(rowsOf(rows)), { split, level: 'hops' });
  expect(environment.levels).toEqual([1, 2, 3]);
  const counts = SPLITS.map((one) => environment.levels.map((level) => environment.taskCount(one, level)));
  expect(counts.flat().reduce((a, b) => a + b)).toBe(rows.filter(({ part }) => part !== 'draft').length);
  expect(await promptsOf(environment, 'heldout', 2)).toEqual(
    rows.filter(({ part, hops }) => part === 'validation' && hops === 2).map(({ question }) => question),
  );
});

test('the same question is of one split, and where columns put it into two the file is refused, with both lines', async () => {
  const twins = [...sums(50), ...sums(50)];
  const environment = make(await written(rowsOf(twins)));
  const [train, heldout] = [await promptsOf(environment, 'train'), await promptsOf(environment, 'heldout')];
  expect(train.filter((prompt) => heldout.includes(prompt))).toEqual([]);
  const file = await written(
    rowsOf([...sums(3).map((row) => ({ ...row, part: 'train' })), { ...sums(2)[1]!, part: 'test' }]),
  );
  expect(() =>
    make(file, { split: { column: 'part', train: ['train'], heldout: [], test: ['test'] } }),
  ).toThrow(/same task in line 2 \(train\) and line 4 \(test\)/u);
});

describe('a file that changes', () => {
  test('under a run is refused, not silently other tasks; written again as it was it is taken', async () => {
    const text = rowsOf(sums(20));
    const file = await written(text);
    const environment = make(file);
    const ref = { environment: 'sums', split: 'train' as const, level: 1, index: 0 };
    const task = await environment.task(ref);
    await writeFile(file, text);
    expect(await environment.task(ref)).toEqual(task);
    await writeFile(file, rowsOf(sums(21)));
    expect(() => environment.task(ref)).toThrow(
      /has changed since it was read \(sha256:\w+, now sha256:\w+\)/u,
    );
    await rm(file);
    expect(() => environment.task(ref)).toThrow(/is gone/u);
  });

  test('before a run is another environment, and none where its digest is given', async () => {
    const [one, other] = [await written(rowsOf(sums(20))), await written(rowsOf(sums(21)))];
    expect(make(one).version).not.toBe(make(other).version);
    const sha256 = make(one).version!.replace('sha256:', '');
    expect(make(one, { sha256 }).version).toBe(make(one).version);
    expect(() => make(other, { sha256 })).toThrow(/wants/u);
  });
});

test.each([
  ['a file that is not there', null, /cannot be read/u],
  ['no JSON', '{"question": "a"}\n{"question": \n', /no JSON in line 2/u],
  ['no object', '["a"]\n', /no JSON object in line 1/u],
  ['no such column', '{"answer": "a"}\n', /no text in column question/u],
  ['no rows', '\n\n', /no row of the split train/u],
  [
    'a row of 2,000 levels',
    `{"question": "a", "x": ${'['.repeat(2000)}${']'.repeat(2000)}}\n`,
    /more than 256 levels in line 1/u,
  ],
])('%s is refused by name', async (_, text, why) => {
  const file = text === null ? path.join(folder, 'none.jsonl') : await written(text);
  expect(() => make(file)).toThrow(why);
});

test('a pipe is refused, and not waited for', () => {
  const pipe = path.join(folder, 'pipe.jsonl');
  execFileSync('mkfifo', [pipe]);
  expect(() => make(pipe)).toThrow(/no regular file/u);
});

test('a byte-order mark, blank lines, Windows line ends and no end of the last line are nothing to speak of', async () => {
  const [a, b] = sums(2);
  const file = await written(`\uFEFF${JSON.stringify(a)}\r\n\r\n${JSON.stringify(b)}`);
  const environment = make(file, { split: { heldout: 0, test: 0 } });
  expect(await promptsOf(environment, 'train')).toEqual([a!['question'], b!['question']]);
});
