import path from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { Presenter } from '../../../../runs/ladder/presenter.ts';

let presenter: Presenter;
/** A busy machine takes its time to start a process. */
const open = (module?: string, patienceMs = 120_000): Presenter =>
  (presenter = new Presenter(
    {
      modules: module === undefined ? [] : [path.resolve('test/support', module)],
      log: () => undefined,
    },
    { patienceMs },
  ));
afterEach(() => presenter.close());

test('a molecule is drawn in a process beside this one, and its drawing is had by its place', async () => {
  const { key, blocks, problem } = await open().present('molecules', { smiles: 'CCO' });
  expect(problem).toBeNull();
  expect(blocks[0]).toMatchObject({ kind: 'svg', alt: 'Structure of CCO' });
  expect(presenter.drawing(key, 0)).toContain('<path');
  expect(presenter.drawing(key, 1)).toBeNull();
  expect(presenter.drawing('another', 0)).toBeNull();
});

test('a process that dies over a subject is replaced for the next one, and what is never shown keeps nobody', async () => {
  const hostile = open('hostile-environments.ts');
  expect(await hostile.present('hostile-present', { does: 'exit' })).toMatchObject({
    blocks: [],
    problem: expect.stringContaining('exit code 3') as string,
  });
  expect(await hostile.present('hostile-present', { does: 'fine' })).toMatchObject({
    blocks: [{ kind: 'text', text: 'a subject' }],
    problem: null,
  });
  expect(await hostile.presentSoon('hostile-present', { does: 'hang' }, 50)).toBeNull();
});

test('what hangs over a subject is waited for no longer than a reader has patience', async () => {
  const hostile = open('hostile-environments.ts', 2000);
  // Its process takes its time to start, for which a reader has no more patience than for the rest.
  let asked = 0;
  const started = async () =>
    (await hostile.present('hostile-present', { does: 'fine', asked: ++asked })).problem;
  await expect.poll(started, { interval: 100 }).toBeNull();
  expect((await hostile.present('hostile-present', { does: 'hang' })).problem).toContain('showed nothing');
});

test('modules that cannot be loaded, and environments that are not there, are said', async () => {
  expect((await open('no-such-module.ts').present('any', {})).problem).toContain('there is no such file');
  await presenter.close();
  expect((await open().present('any', {})).problem).toContain('GRADUS_ENVIRONMENTS');
  // One that has no present() is no fault.
  expect(await presenter.present('calculator', { of: 1 })).toMatchObject({ blocks: [], problem: null });
});
