import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { StoredStep } from '../../../store/training/step-facts.ts';
import { runCommand } from '../../../infra/setup/command.ts';
import { ensurePythonEnvironment } from '../../../infra/setup/python-environment.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { HELD_OUT } from '../../../core/names.ts';
import { rolloutsOfRun } from '../../../store/keys.ts';
import { runClaims } from '../../../store/run/run-claim.ts';
import { checkedJson } from '../../../store/codec.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { decide } from '../../../workflows/control/messages.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { assertOutput } from '../../support/json-output.ts';
import { ROOT } from '../../support/markdown.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { inOrder } from '../../support/tiny-spec.ts';

// A run that is over is read from the store alone, and its exports by the programs that they are for.

const RUN = 'measured';
let installation: TestInstallation;
let folder: string;
let store: ObjectStore;

type Exported = StoredStep & { figures: Record<string, number> };
let steps: Exported[];

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-exports-'));
  installation = await startTestInstallation();
  const brief = briefSpec();
  const [warmStart, rl] = brief.stages;
  const unreachable = { successAtLeast: 1, tasksPerLevel: 8 };
  const handle = await installation.runs.start(RUN, {
    ...brief,
    stages: inOrder({ ...warmStart, graduation: unreachable }, rl),
  });
  await installation.runs.progress(handle, ({ status }) => status === 'waiting');
  await handle.executeUpdate(decide, { args: ['advance'] });
  await handle.result();
  store = await ObjectStore.connect(installation.settings.store);
  const { code, stdout, stderr } = await gradus('metrics', RUN, '--json');
  if (code !== 0) throw new Error(stderr);
  steps = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Exported);
}, 600_000);
afterAll(async () => {
  store?.close();
  await installation?.remove();
  await rm(folder, { recursive: true, force: true });
});

/** With a store, and with nothing where Temporal would be. */
async function gradus(...args: string[]) {
  const { endPoint, port, accessKey, secretKey, bucket } = installation.settings.store;
  const env = {
    ...process.env,
    TEMPORAL_ADDRESS: '127.0.0.1:1',
    GRADUS_S3_URL: `http://${endPoint}:${port}`,
    GRADUS_S3_ACCESS_KEY: accessKey,
    GRADUS_S3_SECRET_KEY: secretKey,
    GRADUS_S3_BUCKET: bucket,
  };
  const command = ['--import', 'tsx', 'cli/gradus.ts', ...args];
  const done = await runCommand(process.execPath, command, { env, cwd: ROOT });
  if (args.includes('--json')) assertOutput(args, done.stdout);
  return done;
}

test('a run is read back whole: every round and step, with what was decided, asked and answered', async () => {
  expect(steps.map(({ stage, stageStep, step }) => [stage, stageStep, step])).toEqual([
    ['warm-start', 1, 1],
    ['rl', 1, 2],
    ['rl', 2, 3],
  ]);
  expect(steps[0]).toMatchObject({
    rollout: null,
    decision: { kind: 'stuck', action: 'ask', question: { reason: expect.stringContaining('in 1 round:') } },
    answer: 'advance',
  });
  expect(steps[1]).toMatchObject({
    answer: null,
    rollout: { episodes: 16, rewardGroups: 4 },
    figures: { 'episodes/tokens': expect.any(Number), 'learner/loss': expect.any(Number) },
  });
  expect(steps[2]!.heldOut).not.toBeNull();
  // A mask of the batch leaves out prompts and what tools said.
  const { maskedTokens, tokens } = steps[1]!.batch!;
  expect(maskedTokens).toBe(steps[1]!.rollout!.sampledTokens);
  expect(maskedTokens).toBeLessThan(tokens);

  const { stdout } = await gradus('metrics', RUN);
  expect(stdout).toMatch(/step 1 \(warm-start\): stuck: .*; a person was asked, answered: advance/);
  expect(stdout).toMatch(/^2\trl\t/mu);
});

test('TensorBoard and pyarrow read what was exported', async () => {
  const requirements = path.join(import.meta.dirname, 'requirements.txt');
  const { python } = await ensurePythonEnvironment('read-exports', requirements, console.error);
  const board = path.join(folder, 'board');
  const file = path.join(folder, 'episodes.parquet');
  // Twice: what is exported again replaces what was.
  for (let i = 0; i < 2; i++) {
    const { code, stderr } = await gradus('metrics', RUN, '--tensorboard', board, '--parquet', file);
    expect(code, stderr).toBe(0);
  }
  const read = await runCommand(python, [path.join(import.meta.dirname, 'read-exports.py'), board, file]);
  expect(read.code, read.stderr).toBe(0);
  const { scalars, rows } = JSON.parse(read.stdout) as {
    scalars: Record<string, Record<string, [step: number, wallTime: number, value: number][]>>;
    rows: Record<string, string | number | boolean | null>[];
  };

  expect(Object.keys(scalars).toSorted()).toEqual([`${RUN}/rl`, `${RUN}/warm-start`]);
  for (const { stage, step, figures, circumstances } of steps) {
    for (const [name, value] of Object.entries(figures)) {
      const found = scalars[`${RUN}/${stage}`]![name]!.filter(([at]) => at === step);
      expect(found, name).toEqual([[step, circumstances.endedAt / 1000, Math.fround(value)]]);
    }
  }

  const trained = rows.filter(({ stage }) => stage === 'rl');
  expect(trained).toHaveLength(32);
  // Of each group the advantages are those of GRPO: (r − mean) / deviation, as the learner was given them.
  for (const row of trained) {
    const rewards = trained
      .filter(({ step, index }) => step === row['step'] && index === row['index'])
      .map(({ reward }) => Number(reward));
    expect(rewards).toHaveLength(4);
    const mean = rewards.reduce((sum, reward) => sum + reward, 0) / 4;
    const deviation = Math.sqrt(rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / 3);
    const advantage = deviation < 1e-8 ? 0 : (Number(row['reward']) - mean) / deviation;
    expect(row['advantage']).toBeCloseTo(advantage, 5);
  }
  const [first] = trained;
  const prefix = `${rolloutsOfRun(RUN)}rl/000001/`;
  const { keys } = await store.listFolder(prefix);
  const group = await loadTrajectories(store, (await store.head(keys.toSorted()[0]!))!);
  const { tokens, mask, samplerLogprobs, turns } = group.episodes[0]!;
  expect(first).toMatchObject({
    group: 0,
    sample: 0,
    environment: 'calculator',
    split: 'train',
    level: 1,
    turns: turns.length,
    sampled_tokens: mask.filter((bit) => bit === 1).length,
    observation_tokens: tokens.length - mask.filter((bit) => bit === 1).length,
    logprob_sum: samplerLogprobs.reduce((sum, logprob) => sum + logprob, 0),
  });
  // What was measured is there as well, and was not learnt from.
  const measured = rows.filter(({ split }) => split !== 'train');
  expect(new Set(measured.map(({ stage }) => stage))).toEqual(
    new Set(['before', 'after', 'warm-start', `rl${HELD_OUT}`]),
  );
  expect(measured.every(({ advantage }) => advantage === null)).toBe(true);
  expect(rows.every((row) => Math.abs(Number(row['score_exact-match']) - 0.5) === 0.5)).toBe(true);
}, 600_000);

test('facts that are damaged, or of another format, are named', async () => {
  const key = 'runs/broken/steps/rl/000001.json';
  await store.putIfAbsent('runs/broken/run.json', runClaims, { spec: null });
  const anything = checkedJson<{ format: string }>((json) => json as never);
  await store.putIfAbsent(key, anything, { format: 'gradus.step/9' });
  const { code, stderr } = await gradus('metrics', 'broken');
  expect(code).toBe(1);
  expect(stderr).toContain(`${key} is not the facts of a step: format`);
});

test('facts that lack what the table tells are named, too', async () => {
  const { figures: _, answer: __, ...whole } = steps[0]!;
  const { incidents: ___, ...circumstances } = whole.circumstances;
  const key = 'runs/partial/steps/rl/000001.json';
  await store.putIfAbsent('runs/partial/run.json', runClaims, { spec: null });
  await store.putIfAbsent(
    key,
    checkedJson<object>((json) => json as never),
    { format: 'gradus.step/1', ...whole, circumstances },
  );
  const { code, stderr } = await gradus('metrics', 'partial');
  expect(code).toBe(1);
  expect(stderr).toContain(`${key} is not the facts of a step: circumstances: incidents`);
});
