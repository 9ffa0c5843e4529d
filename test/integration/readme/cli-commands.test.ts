import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { loadCheckpoint } from '../../../activities/store/checkpoints.ts';
import { ObjectStore } from '../../../activities/store/object-store.ts';
import { startInstallation } from '../../../cli/stack-with-workers.ts';
import type { Installation } from '../../../cli/stack-with-workers.ts';
import type { CurriculumResult } from '../../../core/curriculum.ts';
import { runCommand } from '../../../infra/setup/command.ts';
import { requireBinary } from '../../../infra/setup/server-binaries.ts';
import type { Progress } from '../../../workflows/messages.ts';
import { ROOT, taggedBlock } from '../../support/markdown.ts';
import { tinySpec } from '../../support/tiny-spec.ts';

const SPEC_OF_README = 'examples/calculator.json';
const WORKFLOW_ID = 'my-run';
const WAIT = { timeout: 60_000, interval: 200 };

let folder: string;
let installation: Installation;
let env: NodeJS.ProcessEnv;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-readme-'));
  // The README's commands say `temporal`, whatever the file of the CLI is called.
  const bin = path.join(folder, 'bin');
  await mkdir(bin);
  await symlink(await requireBinary('temporal-cli'), path.join(bin, 'temporal'));
  await writeFile(path.join(folder, 'spec.json'), JSON.stringify(spec()));
  installation = await startInstallation({ stateDir: path.join(folder, 'state'), ui: false });
  env = {
    ...process.env,
    PATH: `${bin}${path.delimiter}${process.env['PATH']}`,
    TEMPORAL_ADDRESS: installation.settings.temporalAddress,
  };
});
afterAll(async () => {
  await installation?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** A run that asks after one small round of warm start, and then has more steps than the test has patience. */
function spec() {
  const tiny = tinySpec({ maxSteps: 1000, groupsPerStep: 2 });
  const [stage] = tiny.stages;
  return {
    ...tiny,
    warmStart: {
      ...tiny.warmStart,
      updatesPerRound: 4,
      maxRounds: 1,
      graduation: { successAtLeast: 1, tasksPerLevel: 8 },
    },
    stages: [{ ...stage!, graduation: { successAtLeast: 0.9, tasks: 32, everySteps: 1000 } }],
    evaluation: { ...tiny.evaluation, count: 8 },
  };
}

/** Runs a block of the README in a shell, as a person would; only the spec is a smaller one. */
async function shell(tag: string, change = (block: string): string => block): Promise<string> {
  const block = taggedBlock('README.md', `cli ${tag}`);
  const commands = change(block).replaceAll(SPEC_OF_README, path.join(folder, 'spec.json'));
  const { code, stdout, stderr } = await runCommand('bash', ['-euc', commands], { env, cwd: ROOT });
  if (code !== 0) throw new Error(`${commands}ended with ${code}:\n${stdout}${stderr}`);
  return stdout;
}

/** The JSON in what the CLI prints for people. */
function json(printed: string): unknown {
  const found = /\{.*\}/s.exec(printed);
  if (!found) throw new Error(`no JSON in:\n${printed}`);
  return JSON.parse(found[0]) as unknown;
}

const progress = async (): Promise<Progress> => json(await shell('progress')) as Progress;
const until = (condition: () => Promise<void>): Promise<void> => vi.waitFor(condition, WAIT);

test('a run is started, watched, asked, paused, found and stopped with the commands of the README', async () => {
  expect(await shell('start')).toContain(WORKFLOW_ID);

  await until(async () => expect(await progress()).toMatchObject({ run: WORKFLOW_ID, status: 'waiting' }));
  expect((await progress()).question).toContain('warm start');
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

  // What visibility lists lags behind a little.
  await until(async () => expect(await shell('list')).toContain(WORKFLOW_ID));
  expect(await shell('list-by-reward')).not.toContain(WORKFLOW_ID);
  expect(await shell('list-by-reward', (block) => block.replace('> 0.9', '> -9'))).toContain(WORKFLOW_ID);

  await shell('stop');
  const result = json(await shell('result')) as CurriculumResult;
  expect(result).toMatchObject({ end: 'stopped', after: null, stages: [{ name: 'rl', end: 'stopped' }] });
  expect(await progress()).toMatchObject({ status: 'stopped', checkpoint: result.checkpoint });

  const store = await ObjectStore.connect(installation.settings.store);
  try {
    const { manifest } = await loadCheckpoint(store, result.checkpoint);
    expect(manifest.files['model.safetensors']?.sha256).toBe(result.checkpoint.weights);
  } finally {
    store.close();
  }
});
