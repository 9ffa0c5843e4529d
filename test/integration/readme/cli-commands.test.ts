import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { loadCheckpoint } from '../../../store/training/checkpoints.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { startInstallation } from '../../../cli/stack-with-workers.ts';
import type { Installation } from '../../../cli/stack-with-workers.ts';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import type { Progress } from '../../../workflows/control/messages.ts';
import { jsonIn, readmeCommands } from '../../support/readme-commands.ts';
import { tinySpec } from '../../support/tiny-spec.ts';

const SPEC_OF_PAGE = 'examples/calculator.json';
const WORKFLOW_ID = 'my-run';
const WAIT = { timeout: 120_000, interval: 200 };

let folder: string;
let installation: Installation;
let shell: Awaited<ReturnType<typeof readmeCommands>>;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-readme-'));
  await writeFile(path.join(folder, 'spec.json'), JSON.stringify(spec()));
  installation = await startInstallation({ stateDir: path.join(folder, 'state'), ui: false });
  const usual = (block: string): string => block.replaceAll(SPEC_OF_PAGE, path.join(folder, 'spec.json'));
  shell = await readmeCommands(
    { folder, stack: installation.stack, page: 'docs/operations.md', prefix: 'cli' },
    usual,
  );
});
afterAll(async () => {
  await installation?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** A run that asks after one small round of warm start, and then has more steps than the test has patience. */
function spec() {
  const tiny = tinySpec({ maxSteps: 1000, groupsPerStep: 2 });
  const [warmStart, stage] = tiny.stages;
  return {
    ...tiny,
    stages: [
      {
        ...warmStart,
        updatesPerRound: 4,
        maxRounds: 1,
        graduation: { successAtLeast: 1, tasksPerLevel: 8 },
      },
      { ...stage, graduation: { successAtLeast: 0.9, tasks: 32, everySteps: 1000 } },
    ],
    evaluation: { ...tiny.evaluation, count: 8 },
  };
}

const progress = async (): Promise<Progress> => jsonIn(await shell('progress')) as Progress;
const until = (condition: () => Promise<void>): Promise<void> => vi.waitFor(condition, WAIT);

test('a run is started, watched, asked, paused, found and stopped with the commands of docs/operations.md', async () => {
  expect(await shell('start')).toContain(WORKFLOW_ID);

  await until(async () => expect(await progress()).toMatchObject({ run: WORKFLOW_ID, status: 'waiting' }));
  expect((await progress()).question!.reason).toContain('warm-start did not graduate');
  expect((await progress()).question!.answers.map(({ answer }) => answer)).toContain('advance');
  await until(async () => expect(await shell('list-waiting')).toContain(WORKFLOW_ID));
  await shell('decide');
  await until(async () => expect((await progress()).step).toMatchObject({ stage: 'rl' }));
  // Nobody asks any more.
  await expect(shell('decide')).rejects.toThrow('waits for no decision');

  await shell('pause');
  await until(async () => expect((await progress()).status).toBe('paused'));
  await shell('resume');
  const resumedAt = await progress();
  expect(resumedAt.status).toBe('running');
  await until(async () => {
    const { step } = await progress();
    // The step that the pause let finish, and one more.
    expect(step!.stageStep).toBeGreaterThan(resumedAt.step!.stageStep + 1);
  });

  const changed = await shell('change', (block) => block.replace('levels-1-3', 'rl'));
  expect(changed).toContain('it still gains');
  await until(async () => expect((await progress()).step!.maxSteps).toBe(300));
  expect((await progress()).changes).toMatchObject([{ number: 1, maxSteps: { rl: 300 } }]);

  // What visibility lists lags behind a little.
  await until(async () => expect(await shell('list')).toContain(WORKFLOW_ID));
  expect(await shell('list-waiting')).not.toContain(WORKFLOW_ID);
  expect(await shell('list-by-reward')).not.toContain(WORKFLOW_ID);
  await until(async () =>
    expect(await shell('list-by-reward', (block) => block.replace('> 0.9', '> -9'))).toContain(WORKFLOW_ID),
  );

  await shell('stop');
  const result = jsonIn(await shell('result')) as CurriculumResult;
  expect(result).toMatchObject({
    end: 'stopped',
    after: null,
    stages: [
      { name: 'warm-start', end: 'exhausted' },
      { name: 'rl', end: 'stopped' },
    ],
  });
  expect(await progress()).toMatchObject({ status: 'stopped', checkpoint: result.checkpoint });

  const store = await ObjectStore.connect(installation.settings.store);
  try {
    const { manifest } = await loadCheckpoint(store, result.checkpoint);
    expect(manifest.files['model.safetensors']?.sha256).toBe(result.checkpoint.weights);
  } finally {
    store.close();
  }
});

test('the next run of that id is started, looked at, steered and deleted from the terminal', async () => {
  const stageOfTest = (block: string): string => block.replace('levels-1-3', 'rl');
  // It has the same id, and another name: nothing of the first is overwritten.
  expect(await shell('gradus-start')).toMatch(/^my-run\.2$/m);
  await until(async () => expect(await shell('gradus-why')).toContain('warm-start did not graduate'));
  await until(async () => expect(await shell('gradus-runs')).toMatch(/my-run\.2 \(my-run\)\twaiting/));
  expect(await shell('gradus-decide')).toContain('my-run: advance');
  await until(async () => expect((await progress()).step).toMatchObject({ stage: 'rl' }));
  expect(await shell('gradus-set', stageOfTest)).toContain('change 1 of my-run');
  expect((await progress()).changes).toMatchObject([{ maxSteps: { rl: 300 }, reason: 'it still learns' }]);
  expect(await shell('gradus-stop')).toContain('it ends after the step in flight');
  expect(jsonIn(await shell('result'))).toMatchObject({ end: 'stopped' });

  // The first one goes, and the second stays.
  const store = ObjectStore.open(installation.settings.store);
  try {
    expect((await store.list('runs/my-run/')).length).toBeGreaterThan(10);
    expect(await shell('gradus-delete')).toContain('my-run is deleted');
    expect(await store.list('runs/my-run/')).toEqual([]);
    expect((await store.list('runs/my-run.2/')).length).toBeGreaterThan(10);
  } finally {
    store.close();
  }
  expect((await progress()).run).toBe('my-run.2');
});
