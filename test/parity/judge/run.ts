// Judges against a server that is not ours: llama-cpp-python's, with a model of random weights, whose verdicts mean
// nothing and whose protocol is real. Run: npm run parity:judge
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import type { Candidate, TierFinding } from '../../../environments/contract/environment.ts';
import { judge } from '../../../environments/verifiers/judge/judge.ts';
import type { JudgeOptions } from '../../../environments/verifiers/judge/options.ts';
import { ensurePythonEnvironment } from '../../../infra/setup/python-environment.ts';

const START_SECONDS = 120;
const KEY = 'a-key-for-parity';
process.env['PARITY_JUDGE_KEY'] = KEY;

const here = import.meta.dirname;
const { python } = await ensurePythonEnvironment(
  'parity-judge',
  path.join(here, 'requirements.txt'),
  console.log,
);
const folder = await mkdtemp(path.join(tmpdir(), 'gradus-parity-judge-'));
let server: ChildProcess | undefined;
try {
  const model = path.join(folder, 'random.gguf');
  execFileSync(python, [path.join(here, 'make_model.py'), model], { stdio: ['ignore', 'ignore', 'inherit'] });
  const port = await freePort();
  const args = ['--model', model, '--port', String(port), '--n_ctx', '8192', '--n_threads', '1'];
  server = spawn(
    python,
    ['-m', 'llama_cpp.server', '--host', '127.0.0.1', '--api_key', KEY, '--verbose', 'false', ...args],
    { stdio: 'ignore' },
  );
  const baseUrl = `http://127.0.0.1:${port}/v1`;
  await answering(baseUrl, server);
  await check(baseUrl);
} finally {
  if (server?.exitCode === null) {
    server.kill();
    await once(server, 'exit');
  }
  await rm(folder, { recursive: true, force: true });
}

async function check(baseUrl: string): Promise<void> {
  const pass = z.strictObject({ score: z.literal([0, 1]) });
  // What its grammar reads: the schema beside `json_object`.
  const { $schema: _, ...schema } = z.toJSONSchema(pass);
  const constrained = {
    schema: pass,
    body: { response_format: { type: 'json_object', schema: schema as never } },
  };
  const show = (what: string, finding: TierFinding) => console.log(`${what}: ${JSON.stringify(finding)}`);

  const first = await verdict(baseUrl, { ...constrained, samples: 5 });
  show('five judges held to the schema', first);
  assert.ok(first.kind === 'scored' && (first.score === 0 || first.score === 1));
  assert.ok(first.usd! > 0);
  const again = await verdict(baseUrl, { ...constrained, samples: 5 });
  assert.deepEqual(again, first, 'the same seeds gave another verdict');

  const free = await verdict(baseUrl, { responseFormat: 'text', maxTokens: 60 });
  show('a judge held to nothing', free);
  assert.ok(free.kind === 'abstained' && ['cut-off', 'unreadable'].includes(free.type));

  const long = await verdict(baseUrl, { responseFormat: 'text' }, 'x'.repeat(20_000));
  show('an attempt longer than its context', long);
  assert.ok(long.kind === 'abstained' && long.type === 'too-long');

  await assert.rejects(verdict(baseUrl, {}), { type: 'judge-request', message: /set responseFormat/ });
  console.log('json_schema: refused, with the advice to set responseFormat');
  process.env['PARITY_JUDGE_KEY'] = 'another-key-for-parity';
  await assert.rejects(verdict(baseUrl, constrained), { type: 'judge-request', message: /check the key/ });
  console.log('a wrong key: refused');
}

function verdict(baseUrl: string, options: Partial<JudgeOptions>, answer = 'Hello!'): Promise<TierFinding> {
  const verifier = judge({
    name: 'polite',
    baseUrl,
    apiKeyEnv: 'PARITY_JUDGE_KEY',
    model: 'random',
    rubric: 'Is it polite?',
    tier: 'simulation',
    cost: { seconds: 1, usd: 0 },
    prices: { input: 1, output: 1 },
    ...options,
  });
  const candidate: Candidate = {
    task: { ref: { environment: 'parity', split: 'train', level: 1, index: 0 }, prompt: 'Greet me.' },
    episode: { turns: [], status: { kind: 'answered', answer } },
    answer,
    tools: [],
  };
  const { served } = verifier;
  if (served.by !== 'function') throw new Error('a judge is a function');
  const { signal } = new AbortController();
  return served.verify(verifier.subject(candidate), { signal, heartbeat: () => undefined });
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, 'close');
  return port;
}

async function answering(baseUrl: string, server: ChildProcess): Promise<void> {
  const limit = AbortSignal.timeout(START_SECONDS * 1000);
  const headers = { authorization: `Bearer ${KEY}` };
  while (!(await fetch(`${baseUrl}/models`, { headers }).catch(() => undefined))?.ok) {
    if (server.exitCode !== null) throw new Error(`the server ended with ${server.exitCode}`);
    if (limit.aborted) throw new Error(`the server does not answer ${START_SECONDS} s after its start`);
    await wait(200);
  }
}
