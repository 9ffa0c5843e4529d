import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { runKey } from '../../../store/keys.ts';
import { runClaims } from '../../../store/run/run-claim.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import type { StoredStep } from '../../../store/training/step-facts.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { ids } from '../../../core/names.ts';
import { gradusCommand } from '../../support/gradus-command.ts';
import { killInActivity } from '../../support/kill-workers.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';

// A supervised stage imitates what a person gives: what a run exported is such data.

let installation: TestInstallation;
let store: ObjectStore;
let folder: string;
let file: string;

beforeAll(async () => {
  installation = await startTestInstallation();
  const { settings, runs } = installation;
  store = await ObjectStore.connect(settings.store);
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-given-'));
  file = path.join(folder, 'solved.jsonl');
  await (await runs.start('first', briefSpec())).result();
  const { temporalAddress: address, namespace } = settings;
  const gradus = gradusCommand({
    temporal: { address, namespace },
    objectStore: { ...settings.store, useSSL: false },
  });
  expect(await gradus('find', 'first', '--split', 'heldout', '--jsonl', file)).toMatchObject({ code: 0 });
  // A turn that was malformed is followed by what a person would say.
  const exported = (await readFile(file, 'utf8')).trim().split('\n');
  const whole = exported.filter((line) => {
    const { messages } = JSON.parse(line) as { messages: { role: string }[] };
    return messages.at(-1)!.role === 'assistant' && messages.slice(1).every(({ role }) => role !== 'user');
  });
  expect(whole.length).toBeGreaterThan(3);
  await writeFile(file, `${whole.join('\n')}\n`);
}, 600_000);
afterAll(async () => {
  store?.close();
  await installation?.remove();
  await rm(folder, { recursive: true, force: true });
});

function spec(data: string): unknown {
  const { model: _, stages, ...brief } = briefSpec();
  const [warmStart] = stages;
  return { ...brief, model: { from: 'first' }, stages: [{ ...warmStart, updatesPerRound: 4, data }] };
}

test('trains on a copy, so that the same data gives the same weights wherever it lies and whatever becomes of the file', async () => {
  const fromFile = await (await installation.runs.start('from-file', spec(file))).result();
  const claim = await store.find(runKey('from-file'), runClaims);
  const [stage] = claim!.spec!.stages;
  const { given } = stage as { given: { key: string; sha256: string } };
  expect(given.key).toBe(`data/${given.sha256}.jsonl`);
  const bucket = `s3://${installation.settings.store.bucket}/${given.key}`;
  const fromBucket = await (await installation.runs.start('from-bucket', spec(bucket))).result();
  expect(fromBucket.checkpoint.weights).toBe(fromFile.checkpoint.weights);
  expect(fromFile.steps).toBe(1);
}, 600_000);

test('prefers what a person prefers, held to the model that it begins with', async () => {
  const solved = (await readFile(file, 'utf8')).trim().split('\n');
  const pairs = solved.map((line) => {
    const [prompt, ...chosen] = (JSON.parse(line) as { messages: object[] }).messages;
    return JSON.stringify({ prompt: [prompt], chosen, rejected: 'I do not know.' });
  });
  const preferred = path.join(folder, 'pairs.jsonl');
  await writeFile(preferred, `${pairs.join('\n')}\n`);
  const whole = spec(preferred) as { stages: object[] };
  const stage = { ...whole.stages[0], name: 'prefer', minibatch: 8, algorithm: { kind: 'dpo' } };
  await (await installation.runs.start('prefers', { ...whole, stages: [stage] })).result();
  const [{ batch, learner }] = (await readSteps(store, 'prefers')) as [StoredStep];
  // Four updates of eight pairs.
  expect(batch!.sequences).toBe(64);
  expect(learner!.updates).toBe(4);
  // The first update is made where policy and reference are one, so its loss is log 2.
  expect(learner!.loss).toBeLessThan(Math.log(2));
  expect(learner!.preference!.margin).toBeGreaterThan(0);
}, 600_000);

test('a learner that is killed while it learns ipo after dpo and before kto ends with the same weights', async () => {
  const solved = (await readFile(file, 'utf8')).trim().split('\n');
  const prompts = solved.map((line) => (JSON.parse(line) as { messages: object[] }).messages.slice(0, 1));
  const [pairs, labels] = ['kill-pairs.jsonl', 'kill-labels.jsonl'].map((name) => path.join(folder, name));
  const written = (lines: object[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  await writeFile(pairs!, written(prompts.map((prompt) => ({ prompt, chosen: 'seven', rejected: 'none' }))));
  const labelled = prompts.map((prompt, i) => ({
    prompt,
    completion: i % 2 === 0 ? 'seven' : 'none',
    label: i % 2 === 0,
  }));
  await writeFile(labels!, written(labelled));
  const whole = spec(pairs!) as { stages: object[] };
  const stage = { ...whole.stages[0], minibatch: 8, updatesPerRound: 12 };
  const stages = [
    { ...stage, name: 'dpo', algorithm: { kind: 'dpo' } },
    // Its only learner step is to be hit, on a machine however slow to look.
    { ...stage, name: 'ipo', updatesPerRound: 120, algorithm: { kind: 'dpo', variant: 'ipo' } },
    { ...stage, name: 'kto', data: labels, algorithm: { kind: 'kto' } },
  ];
  const { runs } = installation;
  const alone = await (await runs.start('alone', { ...whole, stages })).result();
  const handle = await runs.start('killed', { ...whole, stages });
  await killInActivity(installation, () => ids.stage('killed', 'ipo'), 'trainStep', 'learner');
  const killed = await handle.result();
  expect(killed.checkpoint.weights).toBe(alone.checkpoint.weights);
}, 600_000);

test.each([
  ['a broken line', async () => `${await readFile(file, 'utf8')}{"messages": [\n`, 'is not JSON in the line'],
  ['nothing', async () => '\n', 'is empty'],
  [
    'an answer that goes on',
    async () => chat(['user', 'assistant', 'user', 'assistant']),
    'line 1 goes on after an answer',
  ],
  ['a preference', async () => '{"prompt": "a", "chosen": "b", "rejected": "c"}', 'line 1 is a preference'],
  [
    'more than the model holds',
    async () => chat(['user', 'assistant'], 'seven '.repeat(400)),
    'and the model holds 256',
  ],
])('%s is refused before anything is spent', async (what, content, why) => {
  const bad = path.join(folder, 'bad.jsonl');
  await writeFile(bad, await content());
  const run = `refused-${what.replaceAll(' ', '-')}`;
  const failure = await (await installation.runs.start(run, spec(bad))).result().then(
    () => 'it was taken',
    (error: Error) => String((error.cause as Error | undefined)?.cause),
  );
  expect(failure).toContain(why);
  expect(failure).toContain(bad);
  expect(await store.head(runKey(run))).toBeUndefined();
});

const chat = (roles: string[], content = 'seven'): string =>
  JSON.stringify({ messages: roles.map((role) => ({ role, content })) });
