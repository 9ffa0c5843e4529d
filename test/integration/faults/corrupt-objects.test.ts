import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runPrefix } from '../../../store/keys.ts';
import type { OpenQuestion } from '../../../core/question.ts';
import { PROCESSES } from '../../../workers/all-in-one.ts';
import { decide, resume } from '../../../workflows/control/messages.ts';
import { killAndReplace } from '../../support/kill-workers.ts';
import { ladderSpec, startLadderInstallation } from '../../support/ladder-installation.ts';
import type { LadderInstallation } from '../../support/ladder-installation.ts';
import { storedFacts } from '../../support/stored-facts.ts';

// A run is paused, and everything that it has stored is damaged: a byte flipped, cut in half, emptied. Its workers have
// no cache and remember nothing. It asks about what it needs, object by object, goes on when that one alone is put back,
// and ends as if nothing had happened.

let installation: LadderInstallation;
let backup: string;

beforeAll(async () => {
  backup = await mkdtemp(path.join(tmpdir(), 'gradus-objects-'));
  installation = await startLadderInstallation({
    env: { GRADUS_BLOB_CACHE: path.join(import.meta.filename, 'no-folder') },
    processes: PROCESSES,
  });
}, 600_000);
afterAll(async () => {
  await installation?.remove();
  await rm(backup, { recursive: true, force: true });
});

const fileOf = (key: string): string =>
  path.join(installation.stateDir, 'object-store', 'objects', 'gradus', key);
const copyOf = (key: string): string => path.join(backup, key.replaceAll('/', '+'));

const DAMAGE: ((bytes: Buffer) => Buffer)[] = [
  (bytes) => {
    const at = Math.floor(bytes.length / 2);
    const flipped = Buffer.from(bytes);
    flipped.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    return flipped;
  },
  (bytes) => bytes.subarray(0, Math.floor(bytes.length / 2)),
  () => Buffer.alloc(0),
];

async function damage(key: string, how: number): Promise<void> {
  await copyFile(fileOf(key), copyOf(key));
  await writeFile(fileOf(key), DAMAGE[how % DAMAGE.length]!(await readFile(fileOf(key))));
}

test('a run of which everything is damaged asks object by object, and loses nothing', async () => {
  const { runs, startPaused, store, workers } = installation;
  const spec = ladderSpec([{ verifier: 'near', passAtLeast: 0.5, wait: true }], {
    maxSteps: 3,
    groupsPerStep: 2,
    offer: 1,
  });
  const alone = await (await runs.start('alone', spec)).result();

  const { handle } = await startPaused('damaged', spec);
  await runs.settled('damaged/rl');
  await runs.settled('damaged/ladder');
  const all = await store.list(runPrefix('damaged'));
  const keys = all.filter(({ bytes }) => bytes > 0).map(({ key }) => key);
  for (const [i, key] of keys.entries()) await damage(key, i);
  await killAndReplace(workers, 'orchestrator', 'rollout', 'learner');

  const ended = handle.result();
  let over = false;
  void ended.catch(() => undefined).then(() => (over = true));
  const asked: string[] = [];
  let last: OpenQuestion | null = null;
  await handle.signal(resume);
  for (;;) {
    const { question, status } = await runs.progress(
      handle,
      (shown) =>
        over ||
        !['running', 'paused', 'waiting'].includes(shown.status) ||
        (shown.status === 'waiting' && shown.question!.id !== last?.id),
      120_000,
    );
    if (status !== 'waiting' || over) break;
    last = question;
    expect(question!.reason).toContain('Restore it');
    const named = keys.filter((key) => question!.reason.includes(key));
    expect([question!.reason, named]).toEqual([question!.reason, [expect.any(String)]]);
    if (!asked.includes(named[0]!)) {
      asked.push(named[0]!);
      await copyFile(copyOf(named[0]!), fileOf(named[0]!));
    }
    await handle.executeUpdate(decide, { args: ['continue'] });
  }
  const kinds = asked.map((key) =>
    key
      .split('/')
      .slice(2)
      .at(key.includes('/checkpoints/') ? -1 : 0),
  );
  expect(new Set(kinds)).toEqual(
    new Set([
      'manifest.json',
      'config.json',
      'generation_config.json',
      'tokenizer.json',
      'tokenizer_config.json',
      'model.safetensors',
      'optimizer.safetensors',
      'rollouts',
      'heard',
    ]),
  );
  const result = await ended;
  expect(result).toMatchObject({ end: alone.end, steps: alone.steps });
  expect(result.checkpoint.weights).toBe(alone.checkpoint.weights);
  for (const key of keys) await copyFile(copyOf(key), fileOf(key));
  expect(await storedFacts(store, 'damaged')).toEqual(await storedFacts(store, 'alone'));
}, 600_000);
