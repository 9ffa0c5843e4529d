// A learner and a policy on a server of Tinker's API that is not ours: SkyRL's, in JAX on processors. A JSON summary is the
// only output on stdout. `--python FILE` takes a Python that has it; `--whole-run` also trains there, and kills. Run:
// npm run parity:tinker
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { newModelFiles } from '../../../engine/new-model-files.ts';
import { ensurePythonEnvironment } from '../../../infra/setup/python-environment.ts';
import { lively } from '../../support/engine/tiny.ts';
import { QWEN3, writeQwen3 } from './base-model.ts';
import { KEY, PythonServer } from './python-server.ts';
import { compareSteps } from './steps.ts';
import { trainAndKill } from './whole-run.ts';

const VERSIONS = { skyrl: '0.3.0', tuft: '0.2.2' };
const { values } = parseArgs({
  options: {
    python: { type: 'string' },
    server: { type: 'string', default: 'skyrl' },
    'whole-run': { type: 'boolean' },
  },
});
const server = z.enum(['skyrl', 'tuft']).parse(values.server);
if (server === 'tuft' && values['whole-run']) throw new Error('--whole-run is of SkyRL, which samples, too');
const say = (text: string): void => void process.stderr.write(`parity:tinker: ${text}\n`);
const requirements = path.join(import.meta.dirname, `requirements-${server}.txt`);
const python =
  values.python ?? (await ensurePythonEnvironment(`parity-tinker-${server}`, requirements, say)).python;
const folder = await mkdtemp(path.join(tmpdir(), 'gradus-parity-tinker-'));
let held = false;
try {
  const summary = values['whole-run']
    ? { runs: await trainAndKill(python, folder, say) }
    : { compared: await compared() };
  const all: { held: boolean }[] = Object.values(summary).flat();
  held = all.every((one) => one.held);
  process.stdout.write(`${JSON.stringify({ [server]: VERSIONS[server], held, ...summary }, null, 2)}\n`);
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
  const running = await PythonServer.start(server, { python, model, folder });
  const traits = server === 'skyrl' ? { sharesA: true, samples: true } : { key: KEY };
  try {
    return await compareSteps(running.url, { config: QWEN3, weights, files }, traits, say);
  } finally {
    await running.kill();
  }
}

function wordForEachRow(): string {
  const vocab = Object.fromEntries(Array.from({ length: QWEN3.vocabSize }, (_, id) => [`t${id}`, id]));
  const parts = { truncation: null, padding: null, added_tokens: [], normalizer: null, pre_tokenizer: null };
  const words = { model: { type: 'WordLevel', vocab, unk_token: 't0' }, post_processor: null, decoder: null };
  return JSON.stringify({ version: '1.0', ...parts, ...words });
}
