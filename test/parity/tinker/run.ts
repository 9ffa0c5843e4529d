// A learner and a policy on a server of Tinker's API that is not ours: SkyRL's, in JAX on processors. A JSON summary is the
// only output on stdout. `--python FILE` takes a Python that has it; `--whole-run` also trains there, and kills. Run:
// npm run parity:tinker
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { newModelFiles } from '../../../engine/new-model-files.ts';
import { ensurePythonEnvironment } from '../../../infra/setup/python-environment.ts';
import { lively } from '../../support/engine/tiny.ts';
import { QWEN3, writeQwen3 } from './base-model.ts';
import { SkyRlServer } from './skyrl-server.ts';
import { compareSteps } from './steps.ts';
import { trainAndKill } from './whole-run.ts';

const { values } = parseArgs({ options: { python: { type: 'string' }, 'whole-run': { type: 'boolean' } } });
const say = (text: string): void => void process.stderr.write(`parity:tinker: ${text}\n`);
const requirements = path.join(import.meta.dirname, 'requirements.txt');
const python = values.python ?? (await ensurePythonEnvironment('parity-tinker', requirements, say)).python;
const folder = await mkdtemp(path.join(tmpdir(), 'gradus-parity-tinker-'));
let held = false;
try {
  const summary = values['whole-run']
    ? { runs: await trainAndKill(python, folder, say) }
    : { compared: await compared() };
  const all: { held: boolean }[] = Object.values(summary).flat();
  held = all.every((one) => one.held);
  process.stdout.write(`${JSON.stringify({ skyrl: '0.3.0', held, ...summary }, null, 2)}\n`);
} finally {
  await rm(folder, { recursive: true, force: true });
}
process.exit(held ? 0 : 1);

async function compared() {
  const weights = lively(QWEN3, 1);
  const model = path.join(folder, 'base');
  const files = await writeQwen3(
    model,
    QWEN3,
    weights,
    newModelFiles(QWEN3, wordForEachRow(), { bos: 1, eos: [2] }),
  );
  const server = await SkyRlServer.start({ python, model, folder });
  try {
    return await compareSteps(server.url, { config: QWEN3, weights, files }, say);
  } finally {
    await server.kill();
  }
}

function wordForEachRow(): string {
  const vocab = Object.fromEntries(Array.from({ length: QWEN3.vocabSize }, (_, id) => [`t${id}`, id]));
  const parts = { truncation: null, padding: null, added_tokens: [], normalizer: null, pre_tokenizer: null };
  const words = { model: { type: 'WordLevel', vocab, unk_token: 't0' }, post_processor: null, decoder: null };
  return JSON.stringify({ version: '1.0', ...parts, ...words });
}
