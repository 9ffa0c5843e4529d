import { describe, expect, test } from 'vitest';
import type { MadeTaskRef, Split } from '../../../../core/refs.ts';
import { OnceCalls } from '../../../../environments/check/once-calls.ts';
import { playDemonstration } from '../../../../environments/check/play.ts';
import { calculatorEnvironment } from '../../../../environments/families/calculator/environment.ts';
import { webShopEnvironment } from '../../../../environments/families/web-shop/environment.ts';
import { environmentFactsOf } from '../../../../environments/host/facts.ts';
import { hostedHere } from '../../../../environments/host/hosted-environment.ts';
import { programsEnvironment } from '../../../../environments/families/programs/environment.ts';
import type { Environment, Task, Varied } from '../../../../environments/contract/environment.ts';

const FAMILIES: [string, Environment, string][] = [
  ['calculator', calculatorEnvironment(), 'exact-match'],
  ['web-shop', webShopEnvironment(), 'environment'],
];
const HELD_OUT: Split[] = ['heldout', 'test'];
const PER_LEVEL = 12;
const VARIATIONS = 4;

const taskOf = async (environment: Environment, ref: MadeTaskRef): Promise<Task> => ({
  ...(await environment.task(ref)),
  ref,
});
const refOf = (environment: Environment, split: Split, level: number, index: number): MadeTaskRef => ({
  environment: environment.name,
  split,
  level,
  index,
});

interface Made {
  of: Task;
  index: number;
  varied: Extract<Varied, { kind: 'task' }>;
  task: Task;
}

async function allMade(environment: Environment): Promise<Made[]> {
  const made: Made[] = [];
  for (const level of environment.levels)
    for (let at = 0; at < PER_LEVEL; at++) {
      const of = await taskOf(environment, refOf(environment, 'train', level, at));
      for (let index = 0; index < VARIATIONS; index++) {
        const varied = await environment.vary!(of, index);
        if (varied.kind !== 'task') continue;
        const ref: MadeTaskRef = { ...of.ref, made: [varied.proposal] };
        made.push({ of, index, varied, task: await taskOf(environment, ref) });
      }
    }
  return made;
}

describe.each(FAMILIES)('a variation of a task of %s', (_, environment, verifier) => {
  const made = allMade(environment);

  test('is another task of its level, the same each time, and differs by index', async () => {
    const all = await made;
    expect(all.length).toBeGreaterThan(0.8 * PER_LEVEL * VARIATIONS * environment.levels.length);
    for (const { of, index, varied, task } of all) {
      expect(task.prompt).not.toBe(of.prompt);
      expect(task.ref.level).toBe(of.ref.level);
      expect(await environment.vary!(of, index)).toEqual(varied);
    }
    const names = new Set(all.map(({ varied }) => varied.canonical));
    expect(names.size).toBeGreaterThan(all.length / 2);
  });

  test('is solved by an expert', async () => {
    for (const { task } of (await made).filter((__, i) => i % 5 === 0)) {
      const hosted = hostedHere(environment);
      const play = (way: number) =>
        playDemonstration(hosted, task.ref, way, async () => undefined, new OnceCalls(false));
      let { played } = await play(0);
      // Some of its ways show what not to do.
      for (let way = 1; played.weight <= 0; way++) ({ played } = await play(way));
      expect(played.scores.find((one) => one.verifier === verifier)).toMatchObject({ score: 1 });
    }
  });

  test('can be varied again', async () => {
    const [{ task }] = (await made) as [Made];
    const again = await environment.vary!(task, 7);
    expect(again.kind).toBe('task');
    if (again.kind !== 'task') return;
    const third = await taskOf(environment, { ...task.ref, made: [again.proposal] });
    expect(third.prompt).not.toBe(task.prompt);
  });

  test('belongs to the split of its problem: one of train is no task that is held out', async () => {
    const all = await made;
    const inTrain = all.filter(({ varied }) => varied.split === 'train');
    const others = all.filter(({ varied }) => varied.split !== 'train');
    expect(inTrain.length).toBeGreaterThan(0);
    // Nobody has drawn until one was of train: what is held out comes as such, and is told so.
    expect(others.length).toBeGreaterThan(0);
    const asked = new Set<string>();
    for (const split of HELD_OUT)
      for (const level of environment.levels)
        for (let index = 0; index < 1500; index++)
          asked.add((await taskOf(environment, refOf(environment, split, level, index))).prompt);
    expect(inTrain.filter(({ task }) => asked.has(task.prompt))).toEqual([]);
  });
});

test('whether tasks can be varied is told to workers without running a line', () => {
  expect(environmentFactsOf(calculatorEnvironment(), 'here').varies).toBe(true);
  expect(environmentFactsOf(programsEnvironment(), 'here').varies).toBe(false);
});
