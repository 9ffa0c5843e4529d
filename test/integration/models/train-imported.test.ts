import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkpointOf } from '../../../store/training/find-checkpoints.ts';
import { importModel } from '../../../store/training/import-model.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { exportModel } from '../../../cli/export-model.ts';
import { SPECIAL_TOKENS } from '../../../engine/dialect/gradus/special-tokens.ts';
import { loadHfDirectory } from '../../../engine/hf-directory.ts';
import type { Weights } from '../../../core/model/config.ts';
import { trainTokenizer } from '../../../engine/tokenizer/train-bpe.ts';
import { demonstrationCorpus } from '../../../activities/training/corpus.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { writeTinyQwen } from '../../support/tiny-qwen.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { DONE } from '../../support/ended.ts';

// A Hugging Face checkpoint goes in, is trained by a durable run, and comes out as the model that it was.

let installation: TestInstallation;
let store: ObjectStore;
let scratch: string;
let weights: Weights;

beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), 'gradus-brought-'));
  installation = await startTestInstallation();
  store = await ObjectStore.connect(installation.settings.store);
  const calculator = calculatorEnvironment();
  const tokenizer = trainTokenizer(demonstrationCorpus([calculator], 50), 400, SPECIAL_TOKENS);
  const folder = path.join(scratch, 'brought');
  weights = await writeTinyQwen(folder, JSON.stringify(tokenizer), { maxPositions: 128 });
  await importModel(store, path.join(scratch, 'brought'), 'brought');
});
afterAll(async () => {
  store?.close();
  await installation?.remove();
  await rm(scratch, { recursive: true, force: true });
});

test.each([
  ['whole', undefined],
  ['by LoRA', { rank: 2 }],
])(
  'a brought Qwen2 is trained %s, and exported with its names, its family and what its maker wrote',
  async (how, lora) => {
    const name = how === 'whole' ? 'full' : 'lora';
    const { model: _, ...spec } = tinySpec({ maxSteps: 1, groupsPerStep: 4 });
    const [warmStart, stage] = spec.stages;
    const brief = { ...spec, stages: [{ ...warmStart, updatesPerRound: 4, maxRounds: 1 }, stage] };
    const handle = await installation.runs.start(name, {
      ...brief,
      model: { from: 'brought', ...(lora && { lora }) },
    });
    const result = await handle.result();
    expect(result.end).toEqual(DONE);

    const target = path.join(scratch, name);
    const ref = await checkpointOf(store, { run: name, step: null });
    await exportModel(store, ref, target, { dtype: 'F32', maxShardBytes: 5e9, onnx: false });
    const trained = await loadHfDirectory(target);
    expect([...trained.weights.keys()]).toEqual([...weights.keys()]);
    const moved = [...weights].filter(([key, { data }]) => {
      const now = trained.weights.get(key)!.data;
      return data.some((value, i) => value !== now[i]);
    });
    // LoRA's adapters are on the projections of attention; all the rest is the base's to the bit.
    const expected = [...weights.keys()].filter((key) => lora === undefined || key.endsWith('_proj.weight'));
    expect(moved.map(([key]) => key).every((key) => expected.includes(key))).toBe(true);
    expect(moved.length).toBeGreaterThan(3);
    const config = JSON.parse(await readFile(path.join(target, 'config.json'), 'utf8')) as object;
    expect(config).toMatchObject({
      architectures: ['Qwen2ForCausalLM'],
      model_type: 'qwen2',
      makers_own: { anything: true },
      dtype: 'float32',
    });
    expect(await readFile(path.join(target, 'README.md'), 'utf8')).toContain(
      'runs/brought/checkpoints/000000',
    );
  },
);
