import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { z } from 'zod';
import type { evaluateOutput } from '../../../cli/json/evaluate.ts';
import { QUEUES } from '../../../core/names.ts';
import type { StackAddresses } from '../../../infra/dev/stack-addresses.ts';
import { runCommand } from '../../../infra/setup/command.ts';
import { Tokenizer } from '../../../engine/tokenizer/tokenizer.ts';
import { rolloutsPrefix } from '../../../store/keys.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { findTrajectories } from '../../../store/rollout/trajectories.ts';
import { findEvaluation } from '../../../store/run/evaluation.ts';
import { loadModelFiles, textOf } from '../../../store/training/checkpoints.ts';
import { importModel } from '../../../store/training/import-model.ts';
import { importTokenizer } from '../../../store/training/import-tokenizer.ts';
import { outcomeOf } from '../../../runs/control/evaluate.ts';
import type { EvaluateOutcome } from '../../../workflows/training/evaluate.ts';
import { gradusCommand } from '../../support/gradus-command.ts';
import { writeServedFolders } from '../../support/policy-server/served-folders.ts';
import type { ServedFolders } from '../../support/policy-server/served-folders.ts';
import { startPolicyServer } from '../../support/policy-server/start-policy-server.ts';
import type { PolicyServer, PolicyServerOptions } from '../../support/policy-server/start-policy-server.ts';
import { until } from '../../support/run-client.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';

// What servers sample is measured: a model that they hold and Gradus never had, and a checkpoint that they are given.

const tasks = [{ environment: 'calculator', levels: [1] }];
const common = {
  tasks,
  count: 8,
  reward: { components: [{ verifier: 'exact-match', role: 'outcome' }] },
  // The likeliest tokens are the same of every engine.
  sampling: { topK: 1, maxTurns: 2, maxCompletionTokens: 24 },
};

let installation: TestInstallation;
let store: ObjectStore;
let stack: StackAddresses;
let root: string;
let folders: ServedFolders;
/** What the decoder makes of the model, and so what each server must. */
let byDecoder: number[][];
let tokenizer: string;

beforeAll(async () => {
  const extensions = ['own-dialect.ts', 'own-agent-loop.ts'].map((file) =>
    path.resolve(import.meta.dirname, '../../../examples', file),
  );
  installation = await startTestInstallation({ env: { GRADUS_EXTENSIONS: extensions.join(',') } });
  const { temporalAddress: address, namespace, store: objectStore } = installation.settings;
  stack = { temporal: { address, namespace }, objectStore: { ...objectStore, useSSL: false } };
  store = await ObjectStore.connect(objectStore);
  root = await mkdtemp(path.join(tmpdir(), 'gradus-evaluate-served-'));
  folders = await writeServedFolders(root);
  await importModel(store, folders.a.folder, 'model-a');
  await importModel(store, folders.b.folder, 'model-b');
  ({ run: tokenizer } = await importTokenizer(store, folders.a.folder, 'only-the-tokenizer'));
  byDecoder = await episodesOf(await evaluated('by-decoder', { checkpoint: 'model-a' }));
}, 600_000);
afterAll(async () => {
  store?.close();
  await installation?.remove();
  await rm(root, { recursive: true, force: true });
});

const begin = (workflowId: string, input: object) =>
  installation.runs.client.workflow.start<(input: unknown) => Promise<EvaluateOutcome>>('evaluate', {
    args: [{ ...common, ...input }],
    workflowId,
    taskQueue: QUEUES.orchestrator,
  });
const evaluated = async (id: string, input: object): Promise<string> =>
  (await (await begin(id, input)).result()).run!;

/** [N][T]: the tokens of all episodes, in their order. */
async function episodesOf(run: string): Promise<number[][]> {
  const stored = await store.list(rolloutsPrefix(run, 'evaluate'));
  const groups = await Promise.all(stored.map(({ key }) => findTrajectories(store, key)));
  return groups.flatMap((group) => group!.episodes.map(({ tokens }) => [...tokens]));
}

async function serve(options: Partial<PolicyServerOptions> = {}): Promise<PolicyServer> {
  const server = await startPolicyServer({ dialect: 'vllm', model: folders.a.folder, ...options });
  onTestFinished(() => server.kill());
  return server;
}
const policyOf = (server: 'vllm' | 'sglang', ...servers: PolicyServer[]) => ({
  kind: 'http',
  server,
  urls: servers.map(({ url }) => url),
});

test.each(['vllm', 'sglang'] as const)(
  'the command measures a model that a %s server holds',
  async (dialect) => {
    const server = await serve({ dialect });
    const flags = '--environment calculator:1 --verifier exact-match --tasks 8 --top-k 1 --max-turns 2';
    const args = [server.url, ...flags.split(' '), '--max-tokens', '24', '--server', dialect, '--json'];
    const gradus = gradusCommand(stack);
    if (dialect === 'vllm') {
      const without = await gradus('evaluate', ...args);
      expect(without).toMatchObject({ code: 1, stderr: expect.stringContaining('--tokenizer FOLDER') });
      // Who only asks is told what would be stored, and nothing is.
      const before = (await store.list('')).map(({ key }) => key);
      const tokens = ['--tokenizer', folders.a.folder];
      const dry = await gradus('evaluate', ...args.slice(0, -1), ...tokens, '--dry-run');
      expect({ code: dry.code, stderr: dry.stderr }).toMatchObject({ code: 0 });
      expect(dry.stdout).toMatch(/^would store the tokenizer of .* as the run .*-tokenizer-[0-9a-f]{12};/);
      expect(dry.stdout).toContain('would evaluate 8 tasks × 1');
      expect((await store.list('')).map(({ key }) => key)).toEqual(before);
      expect(await server.requests()).toEqual([]);
    }
    const done = await gradus('evaluate', ...args, '--tokenizer', folders.a.folder);
    expect({ code: done.code, stderr: done.stderr }).toMatchObject({ code: 0 });
    const { evaluation } = JSON.parse(done.stdout) as z.infer<typeof evaluateOutput>;
    expect(await episodesOf(evaluation.run)).toEqual(byDecoder);

    // Its version follows from what the server says and from the small files.
    const stored = (await findEvaluation(store, evaluation.run))!;
    const { held } = stored.spec.policy as { held: { version: string; says: object } };
    expect(held.says).toEqual({ root: folders.a.folder, checksum: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(stored.checkpoint.weights).toBe(held.version);
    // Nothing is given to it, and each field that changes what is sampled is sent.
    const asked = await server.requests();
    const paths = asked.map((one) => one.path);
    expect(paths.filter((one) => /lora|update|reload|pause|collective/.test(one))).toEqual([]);
    const sampled = asked
      .filter(({ path: at }) => ['/v1/completions', '/inference/v1/generate', '/generate'].includes(at))
      .map(({ body }) => body as Record<string, object>)
      .map((body) => ({ ...body, ...body['sampling_params'] }));
    expect(sampled.length).toBeGreaterThan(8);
    const fields = [
      'temperature',
      'top_p',
      'top_k',
      'min_p',
      'presence_penalty',
      'frequency_penalty',
      'repetition_penalty',
    ];
    for (const body of sampled) expect(Object.keys(body)).toEqual(expect.arrayContaining(fields));
    if (dialect === 'sglang') return;
    // The same command finds what is stored, and a run of the decoder can be compared with it.
    const against = await gradus(
      'evaluate',
      ...args,
      '--tokenizer',
      folders.a.folder,
      '--against',
      'model-a',
    );
    const { difference } = JSON.parse(against.stdout) as z.infer<typeof evaluateOutput>;
    expect(difference!.all).toMatchObject({ n: 8, mean: 0, equal: 8 });
  },
  600_000,
);

test('a server that is killed in the middle costs nothing, and one that comes back with another model is not sampled from', async () => {
  const slow = [{ name: 'slow' as const, ms: 25 }];
  const server = await serve({ servedName: 'm', faults: slow });
  const policy = policyOf('vllm', server);
  const handle = await begin('killed', { checkpoint: tokenizer, policy });
  const sampled = () => store.list('runs/killed/parts/');
  await until(
    async () => (await sampled()).some(({ key }) => key.includes('/sampled-')) || undefined,
    300_000,
    () => 'nothing was sampled',
  );
  await server.kill();
  const { port } = new URL(server.url);
  const other = await serve({ model: folders.b.folder, servedName: 'm', port: Number(port) });
  // Whoever asks for a sample there has it show first what it computes.
  await until(
    async () => (await other.requests()).some(({ body }) => wantsScores(body)) || undefined,
    300_000,
    () => 'the other model was not looked at',
  );
  const before = (await sampled()).length;
  await other.kill();
  expect((await sampled()).length).toBe(before);
  await serve({ servedName: 'm', port: Number(port) });
  await handle.result();
  expect(await episodesOf('killed')).toEqual(byDecoder);
}, 600_000);

const wantsScores = (body: unknown): boolean =>
  (body as { prompt_logprobs?: number } | undefined)?.prompt_logprobs !== undefined;

test('a checkpoint is handed over as in training, and then measured', async () => {
  const server = await serve({ model: folders.b.folder, weightVersions: true });
  const flags = '--environment calculator:1 --verifier exact-match --tasks 8 --top-k 1 --max-turns 2';
  const given = ['--max-tokens', '24', '--at', server.url, '--folder', path.join(root, 'staged'), '--json'];
  const done = await gradusCommand(stack)('evaluate', 'model-a', ...flags.split(' '), ...given);
  expect({ code: done.code, stderr: done.stderr }).toMatchObject({ code: 0 });
  const { evaluation } = JSON.parse(done.stdout) as z.infer<typeof evaluateOutput>;
  expect(await episodesOf(evaluation.run)).toEqual(byDecoder);
  const reloads = (await server.requests()).filter(({ path: at }) => at === '/collective_rpc');
  expect(reloads).toHaveLength(1);
}, 600_000);

test("Temporal's own command and a Schedule start it with a policy", async () => {
  const server = await serve();
  const input = JSON.stringify({
    ...common,
    count: 4,
    checkpoint: tokenizer,
    policy: policyOf('vllm', server),
    // It has this one already: a copy of the small files is no other model.
    dialect: { name: 'gradus' },
  });
  const temporal = (...args: string[]) =>
    runCommand(installation.stack.temporal.cliPath!, [...args, '--address', stack.temporal.address]);
  const what = ['--type', 'evaluate', '--task-queue', 'gradus', '--input', input];
  expect(await temporal('workflow', 'start', '--workflow-id', 'by-hand', ...what)).toMatchObject({ code: 0 });
  const when = ['--interval', '2s', '--remaining-actions', '1'];
  const schedule = ['schedule', 'create', '--schedule-id', 'nightly', '--workflow-id', 'nightly', ...when];
  expect(await temporal(...schedule, ...what)).toMatchObject({ code: 0 });
  await installation.runs.client.workflow.getHandle('by-hand').result();
  const nightly = await until(
    async () => {
      const { folders: runs } = await store.listFolder('runs/');
      const name = runs.map((one) => one.split('/')[1]!).find((one) => one.startsWith('nightly-'));
      return name === undefined ? undefined : ((await findEvaluation(store, name)) ?? undefined);
    },
    300_000,
    () => 'the schedule has not run',
  );
  const byHand = (await findEvaluation(store, 'by-hand'))!;
  expect(nightly).toMatchObject({ measured: byHand.measured, tasks: byHand.tasks });
  expect(nightly.checkpoint.weights).toBe(byHand.checkpoint.weights);
}, 600_000);

test.each([
  ['no tokenizer', () => ({ checkpoint: 'model-a', policy: url }), /policy\.folder: is missing.*--tokenizer/],
  ['no server', () => ({ checkpoint: tokenizer }), /policy: is missing: the weights of .* are on a server/],
  [
    'a folder for nothing',
    () => ({ checkpoint: tokenizer, policy: { ...url, folder: '/x' } }),
    /policy\.folder: is for a checkpoint that is handed over/,
  ],
])(
  '%s is refused',
  async (what, input, why) => {
    const handle = await begin(`refused-${what.replaceAll(' ', '-')}`, input());
    await expect(outcomeOf(handle)).rejects.toThrow(why);
  },
  600_000,
);
const url = { kind: 'http', server: 'vllm', urls: ['http://127.0.0.1:1'] };

test('an agent makes the episodes that are measured', async () => {
  const file = path.join(root, 'agent.json');
  const program = path.resolve(import.meta.dirname, '../../../examples/agent.mjs');
  const agent = { command: [process.execPath, program], timeoutSeconds: 120, concurrency: 2 };
  await writeFile(file, JSON.stringify({ agent }));
  const flags =
    '--environment calculator:1 --verifier exact-match --tasks 2 --max-turns 2 --max-tokens 24 --json';
  const done = await gradusCommand(stack)('evaluate', 'model-a', ...flags.split(' '), '--agent', file);
  expect({ code: done.code, stderr: done.stderr }).toMatchObject({ code: 0 });
  const { evaluation } = JSON.parse(done.stdout) as z.infer<typeof evaluateOutput>;
  expect((await findEvaluation(store, evaluation.run))!.spec.agent).toMatchObject(agent);
  const turns = (await store.list(`runs/${evaluation.run}/parts/`)).filter(({ key }) =>
    key.includes('/turns/'),
  );
  expect(turns.length).toBeGreaterThanOrEqual(2);
}, 600_000);

test('an agent loop that the project brings makes them, too', async () => {
  const agent = { own: { name: 'second-thought', options: { times: 2 } } };
  const run = await evaluated('own-loop', { checkpoint: 'model-a', count: 2, agent, sampling: LONGER });
  const stored = await store.list(rolloutsPrefix(run, 'evaluate'));
  const groups = await Promise.all(stored.map(({ key }) => findTrajectories(store, key)));
  const episodes = groups.flatMap((group) => group!.episodes);
  expect(episodes).toHaveLength(2);
  for (const { status } of episodes) expect(['answered', 'truncated']).toContain(status.kind);
}, 600_000);
const LONGER = { topK: 1, maxTurns: 3, maxCompletionTokens: 64 };

test('a dialect that the project brings is spoken by the model, and recorded beside it', async () => {
  const own = { name: 'plain-calls', options: { turnEnd: '<|im_end|>' } };
  const run = await evaluated('own-dialect', {
    checkpoint: 'model-a',
    count: 2,
    dialect: { name: 'own', own },
  });
  const { tokenizer: json } = await filesOf(run);
  const [key] = (await store.list(rolloutsPrefix(run, 'evaluate'))).map((one) => one.key);
  const group = (await findTrajectories(store, key!))!;
  expect(json.decode(group.tasks[0]!.promptTokens)).toMatch(/^Call a tool by a line such as.*POLICY $/s);
  const episodes = await episodesOf(run);
  expect(episodes).toHaveLength(2);
  expect(episodes).not.toEqual(byDecoder.slice(0, 2));
}, 600_000);

async function filesOf(run: string): Promise<{ tokenizer: Tokenizer }> {
  const { checkpoint } = (await findEvaluation(store, run))!;
  const files = await loadModelFiles(store, checkpoint);
  expect(textOf(files, 'tokenizer_config.json')).toContain('"plain-calls"');
  return { tokenizer: Tokenizer.fromJson(textOf(files, 'tokenizer.json')) };
}
