// A learner and a policy on a server of Tinker's API that is not ours: SkyRL's, in JAX on processors. A JSON summary is the
// only output on stdout. `--python FILE` takes a Python that has it. Run: npm run parity:tinker
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import getPort from 'get-port';
import type { ModelConfig } from '../../../core/model/config.ts';
import { newModelFiles } from '../../../engine/new-model-files.ts';
import { writeHfWeights } from '../../../engine/hf-weights.ts';
import { ensurePythonEnvironment } from '../../../infra/setup/python-environment.ts';
import { CASE_MODEL } from '../../support/engine/learner-cases.ts';
import { lively } from '../../support/engine/tiny.ts';
import { compareSteps } from './steps.ts';

const START_SECONDS = 180;
/** Qwen3's, one of the two families that SkyRL has in JAX. */
const config: ModelConfig = {
  ...CASE_MODEL,
  attentionHeads: 2,
  keyValueHeads: 1,
  headSize: 16,
  queryKeyNorm: true,
};

const { values } = parseArgs({ options: { python: { type: 'string' } } });
const say = (text: string): void => void process.stderr.write(`parity:tinker: ${text}\n`);
const here = import.meta.dirname;
const requirements = path.join(here, 'requirements.txt');
const python = values.python ?? (await ensurePythonEnvironment('parity-tinker', requirements, say)).python;
const folder = await mkdtemp(path.join(tmpdir(), 'gradus-parity-tinker-'));
const model = path.join(folder, 'base');
const files = await writeBase();
const port = await getPort({ host: '127.0.0.1' });
const options = {
  port: String(port),
  'base-model': model,
  backend: 'jax',
  'backend-config': JSON.stringify({ max_lora_adapters: 6, max_lora_rank: 8 }),
  'checkpoints-base': path.join(folder, 'saved'),
  'database-url': `sqlite:///${folder}/db`,
};
const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
// Its engine is a process of its own, and ends with the group.
const server = spawn(python, [path.join(here, 'serve.py'), ...flags], { stdio: 'ignore', detached: true });
let held = false;
try {
  const url = `http://127.0.0.1:${port}`;
  await answering(url);
  const compared = await compareSteps(url, { config, weights: lively(config, 1), files }, say);
  held = compared.every((one) => one.held);
  process.stdout.write(`${JSON.stringify({ skyrl: '0.3.0', held, compared }, null, 2)}\n`);
} finally {
  if (server.exitCode === null) {
    process.kill(-server.pid!, 'SIGKILL');
    await once(server, 'exit');
  }
  await rm(folder, { recursive: true, force: true });
}
process.exit(held ? 0 : 1);

/** A folder in Hugging Face's layout, with a tokenizer that has a token for each row. */
async function writeBase(): Promise<Map<string, Uint8Array>> {
  const vocab = Object.fromEntries(Array.from({ length: config.vocabSize }, (_, id) => [`t${id}`, id]));
  const parts = { truncation: null, padding: null, added_tokens: [], normalizer: null, pre_tokenizer: null };
  const words = { model: { type: 'WordLevel', vocab, unk_token: 't0' }, post_processor: null, decoder: null };
  const small = newModelFiles(config, JSON.stringify({ version: '1.0', ...parts, ...words }), {
    bos: 1,
    eos: [2],
  });
  const written = JSON.parse(new TextDecoder().decode(small.get('config.json'))) as object;
  const qwen = { ...written, architectures: ['Qwen3ForCausalLM'], model_type: 'qwen3' };
  small.set('config.json', Buffer.from(JSON.stringify(qwen)));
  small.set('tokenizer_config.json', Buffer.from('{"tokenizer_class":"PreTrainedTokenizerFast"}'));
  await mkdir(model);
  await writeHfWeights(model, config, lively(config, 1), { dtype: 'F32', maxShardBytes: 1e9 });
  for (const [name, bytes] of small) await writeFile(path.join(model, name), bytes);
  return small;
}

async function answering(url: string): Promise<void> {
  const until = Date.now() + START_SECONDS * 1000;
  for (;;) {
    if (server.exitCode !== null) throw new Error(`the server ended with ${server.exitCode}`);
    const answer = await fetch(`${url}/api/v1/healthz`).catch(() => undefined);
    if (answer?.ok) return;
    if (Date.now() > until) throw new Error(`the server did not answer within ${START_SECONDS} s`);
    await wait(200);
  }
}
