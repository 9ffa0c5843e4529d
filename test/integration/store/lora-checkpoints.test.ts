import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  adoptCheckpoint,
  loadCheckpoint,
  loadPolicy,
  loadUnmerged,
  saveCheckpoint,
} from '../../../store/training/checkpoints.ts';
import type { CheckpointContent } from '../../../store/training/checkpoints.ts';
import { findCheckpoints } from '../../../store/training/find-checkpoints.ts';
import { applyRetention, collectGarbage } from '../../../store/training/retention.ts';
import { exportAdapter } from '../../../cli/export-adapter.ts';
import { exportModel } from '../../../cli/export-model.ts';
import type { Json } from '../../../core/json/json.ts';
import type { CheckpointRef } from '../../../core/refs.ts';
import { adapterShapes } from '../../../engine/lora/adapter-shapes.ts';
import { initialAdapter } from '../../../engine/lora/initial-adapter.ts';
import { mergeAdapter } from '../../../engine/lora/merge-adapter.ts';
import { readPeftAdapter } from '../../../engine/lora/peft-format.ts';
import type { Weights } from '../../../core/model/config.ts';
import { readSafetensors } from '../../../engine/safetensors/safetensors.ts';
import { checkpointAt, smallConfig } from '../../support/store/fixtures.ts';
import { openTestStore } from '../../support/test-store.ts';

const { store } = await openTestStore();

const lora = { rank: 4, alpha: 8, rsLora: true, targetModules: ['q_proj', 'down_proj'] };
/** No zeros in B, so that merging shows. */
const adapterAt = (step: number): Weights =>
  new Map(
    [...initialAdapter(smallConfig, lora, step)].map(([name, { shape, data }]) => [
      name,
      { shape, data: data.map((value) => value + 0.25) },
    ]),
  );

async function loraRun(run: string, ...steps: number[]) {
  const first = checkpointAt(0, smallConfig, run);
  const base = await saveCheckpoint(store, first);
  const content = (step: number): CheckpointContent => {
    const { files } = first;
    const state = {
      ...first.state,
      adapter: { lora, weights: adapterAt(step) },
      firstMoments: adapterAt(step + 1),
      secondMoments: adapterAt(step + 2),
      updates: step,
    };
    return { ...first, step, state, base, parent: base, files };
  };
  const refs: CheckpointRef[] = [];
  for (const step of steps) refs.push(await saveCheckpoint(store, content(step)));
  return { first, base, content, refs };
}
const kept = async (run: string) =>
  (await findCheckpoints(store, run)).checkpoints.map(({ ref }) => ref.step);
const rule = { keepLast: 1, keepBest: 0, keepEvery: 0, pinned: [] };

describe('a checkpoint of a LoRA run', () => {
  test("comes back to the bit, in PEFT's layout, without its base's weights", async () => {
    const { base, content, refs } = await loraRun('round-trip', 1);
    const [ref] = refs;
    const { state, manifest, files } = await loadCheckpoint(store, ref!);
    expect(state).toEqual(content(1).state);
    expect(manifest.base).toEqual(base);
    expect([...files.keys()]).not.toContain('adapter_config.json');
    const names = Object.keys(manifest.files).toSorted();
    expect(names).toContain('adapter_model.safetensors');
    expect(names).not.toContain('model.safetensors');
    const config = await store.getJson(manifest.files['adapter_config.json']!);
    expect(config).toMatchObject({
      r: 4,
      use_rslora: true,
      base_model_name_or_path: `sha256:${base.weights}`,
    });
    // Saved again from what was loaded it is the same checkpoint.
    const again = { ...content(1), state, files };
    expect(await saveCheckpoint(store, again)).toEqual(ref);
  });

  test('is loaded as merged weights, or for a rollout worker beside a base that may be held already', async () => {
    const { first, base, content, refs } = await loraRun('merged', 1, 2);
    for (const [i, ref] of refs.entries()) {
      const { adapter } = content(i + 1).state;
      const expected = mergeAdapter(smallConfig, first.state.weights, adapter!);
      expect((await loadPolicy(store, ref)).weights).toEqual(expected);
      const asked: CheckpointRef[] = [];
      const held = await loadPolicy(store, base);
      const unmerged = await loadUnmerged(store, ref, {}, (wanted) => {
        asked.push(wanted);
        return Promise.resolve(held);
      });
      expect(unmerged.weights).toBe(held.weights);
      expect(mergeAdapter(smallConfig, unmerged.weights, unmerged.adapter!)).toEqual(expected);
      expect(asked).toEqual([base]);
      expect(held.weights).toEqual(first.state.weights);
    }
  });

  test('has a version that follows from base and adapter alone', async () => {
    const [a, b] = [await loraRun('version-a', 1, 2), await loraRun('version-b', 1)];
    expect(b.refs[0]!.weights).toBe(a.refs[0]!.weights);
    expect(a.refs[1]!.weights).not.toBe(a.refs[0]!.weights);
    const other = { ...lora, alpha: 9 };
    const content = a.content(1);
    const adapter = { ...content.state.adapter!, lora: other };
    const scaled = await saveCheckpoint(store, { ...content, state: { ...content.state, adapter } });
    expect(scaled.weights).not.toBe(a.refs[0]!.weights);
    const otherBase = await saveCheckpoint(store, checkpointAt(9, smallConfig, 'version-a'));
    const moved = await saveCheckpoint(store, { ...content, base: otherBase });
    expect(moved.weights).not.toBe(a.refs[0]!.weights);
    await expect(loadPolicy(store, { ...moved, weights: scaled.weights })).rejects.toMatchObject({
      type: 'checkpoint-conflict',
    });
  });

  test('keeps its base from retention and from the collection of garbage', async () => {
    const { refs } = await loraRun('retained', 1, 2, 3);
    await applyRetention(store, 'retained', rule);
    await collectGarbage(store, 'retained');
    expect(await kept('retained')).toEqual([0, 3]);
    expect((await loadPolicy(store, refs[2]!)).config).toEqual(smallConfig);
  });

  test('is none without its base', async () => {
    const { base } = await loraRun('bereft', 1);
    await store.remove([base.manifest.key]);
    const { checkpoints, incomplete } = await findCheckpoints(store, 'bereft');
    expect(checkpoints).toEqual([]);
    expect(incomplete.map(({ reason }) => reason)).toContain(`its base ${base.manifest.key} is not there`);
  });

  test('becomes the first one of another run as merged weights, which need no base', async () => {
    const { content, refs, first } = await loraRun('lender', 1);
    const ref = await adoptCheckpoint(store, refs[0]!, 'borrower');
    expect(await adoptCheckpoint(store, refs[0]!, 'borrower')).toEqual(ref);
    const { state, manifest } = await loadCheckpoint(store, ref);
    expect(state.adapter).toBeUndefined();
    expect(manifest.base).toBeUndefined();
    expect(state.weights).toEqual(mergeAdapter(smallConfig, first.state.weights, content(1).state.adapter!));
  });

  test("is exported as merged weights, or alone in PEFT's layout", async () => {
    const { base, content, refs, first } = await loraRun('exported', 1);
    const folder = await mkdtemp(path.join(tmpdir(), 'gradus-export-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const [whole, alone] = [path.join(folder, 'whole'), path.join(folder, 'alone')];
    await exportModel(store, refs[0]!, whole, { dtype: 'F32', maxShardBytes: 1e9, onnx: false });
    await exportAdapter(store, refs[0]!, alone);
    expect((await readdir(whole)).filter((name) => name.startsWith('adapter'))).toEqual([]);
    const { adapter, weights } = content(1).state;
    const model = readSafetensors(await readFile(path.join(whole, 'model.safetensors'))).tensors;
    expect(model).toEqual(mergeAdapter(smallConfig, weights, adapter!));
    const files = await readdir(alone);
    expect(files).toContain('tokenizer.json');
    expect(files).not.toContain('model.safetensors');
    const read = async (name: string) => new Uint8Array(await readFile(path.join(alone, name)));
    const config = JSON.parse(await readFile(path.join(alone, 'adapter_config.json'), 'utf8')) as Json;
    const bytes = await read('adapter_model.safetensors');
    expect(readPeftAdapter(config, bytes, smallConfig)).toEqual(adapter);
    expect(first.state.adapter).toBeUndefined();
    await expect(exportAdapter(store, base, path.join(folder, 'base'))).rejects.toMatchObject({
      type: 'no-adapter',
    });
  });

  test('is refused when a matrix is damaged or missing', async () => {
    const { content } = await loraRun('damaged');
    const [name] = adapterShapes(smallConfig, lora)[0]!;
    const broken = content(1);
    broken.state.adapter!.weights.get(name)!.data = new Float32Array(3);
    await expect(saveCheckpoint(store, broken)).rejects.toMatchObject({ type: 'invalid-tensor' });
  });
});
