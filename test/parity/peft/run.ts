// Checks an adapter that we made against PEFT itself; `--fixtures` writes test/fixtures/peft anew first.
// Run: npx tsx test/parity/peft/run.ts
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadTensorflowBackend } from '../../../engine/learner/tensorflow/backend.ts';
import { createLearner } from '../../../engine/learner/process/remote-learner.ts';
import { decoderHidden } from '../../../engine/learner/model/decoder.ts';
import { linear } from '../../../engine/learner/model/linear.ts';
import { loraScale, parameterShapes } from '../../../engine/lora/adapter-shapes.ts';
import { initialAdapter } from '../../../engine/lora/initial-adapter.ts';
import {
  ADAPTER_CONFIG,
  ADAPTER_MODEL,
  toPeftConfig,
  writePeftModel,
} from '../../../engine/lora/peft-format.ts';
import { readSafetensors, writeSafetensors } from '../../../engine/safetensors/safetensors.ts';
import { ensurePythonEnvironment } from '../../../infra/setup/python-environment.ts';
import { freshState, randomBatch, settings } from '../../support/engine/tiny.ts';
import { base, config } from '../../support/engine/peft-fixtures.ts';

const here = path.dirname(fileURLToPath(import.meta.url));
const fixtures = path.join(here, '../../fixtures/peft');
const requirements = path.join(here, 'requirements.txt');
const { python } = await ensurePythonEnvironment('parity-peft', requirements, console.log);

if (process.argv.includes('--fixtures')) {
  execFileSync(python, [path.join(here, 'make_fixtures.py'), fixtures], { stdio: 'inherit' });
}

const lora = { rank: 4, alpha: 6, rsLora: true, targetModules: ['q_proj', 'o_proj', 'up_proj', 'down_proj'] };
const learner = await createLearner({ backend: 'cpu' });
let state = { ...freshState(config, base), adapter: { lora, weights: initialAdapter(config, lora, 1) } };
for (let step = 0; step < 5; step++) {
  const next = await learner.step(state, randomBatch(6, config), settings({ kind: 'supervised' }));
  state = { ...next.state, adapter: next.state.adapter! };
}
await learner.close();

const folder = await mkdtemp(path.join(tmpdir(), 'gradus-peft-'));
try {
  const [rows, length] = [3, 20];
  const tokens = Int32Array.from({ length: rows * length }, (_, i) => (i * 29) % config.vocabSize);
  await writeFile(
    path.join(folder, 'tokens.safetensors'),
    writeSafetensors(new Map([['tokens', { shape: [rows, length], data: tokens }]])),
  );
  await writeFile(path.join(folder, ADAPTER_CONFIG), JSON.stringify(toPeftConfig(lora, 'sha256:none')));
  await writeFile(path.join(folder, ADAPTER_MODEL), writePeftModel(config, state.adapter));
  const out = path.join(folder, 'logits.safetensors');
  execFileSync(
    python,
    [
      path.join(here, 'logits_with_peft.py'),
      path.join(fixtures, 'base'),
      folder,
      path.join(folder, 'tokens.safetensors'),
      out,
    ],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  );
  const theirs = readSafetensors(new Uint8Array(await readFile(out))).tensors.get('logits')!.data;

  const backend = await loadTensorflowBackend('cpu');
  const { tf } = backend;
  const { frozen, trained } = parameterShapes({ config, lora });
  const parameters = new Map(
    [...frozen, ...trained].map(([name, shape]) => {
      const tensor = base.get(name) ?? state.adapter.weights.get(name)!;
      return [name, tf.tensor(tensor.data, shape)];
    }),
  );
  const { hidden, head } = decoderHidden(
    backend,
    config,
    parameters,
    tf.tensor1d(tokens, 'int32'),
    tf.zeros([rows, length], 'int32'),
    { temperature: 1, gradientCheckpointing: false, loraScale: loraScale(lora) },
  );
  const ours = linear(backend, hidden, head).dataSync();
  const largest = Array.from(ours).reduce(
    (most, value, i) => Math.max(most, Math.abs(value - theirs[i]!)),
    0,
  );
  console.log(
    `largest difference of ${ours.length} logits between PEFT and the learner: ${largest.toExponential(1)}`,
  );
  if (!(largest < 1e-4)) process.exitCode = 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}
