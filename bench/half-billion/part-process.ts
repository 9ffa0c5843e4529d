import { packBatch } from '../../activities/training/training-batch.ts';
import { createTraining } from '../../activities/training/learner.ts';
import { randomKey, RandomStream } from '../../core/random.ts';
import type { RolloutDtype } from '../../core/schema/policy.ts';
import { createDecoder } from '../../engine/decoder/decoder.ts';
import { createLearner } from '../../engine/learner/process/remote-learner.ts';
import { initialAdapter } from '../../engine/lora/initial-adapter.ts';
import { mergeAdapter } from '../../engine/lora/merge-adapter.ts';
import { ObjectStore } from '../../store/objects/object-store.ts';
import { putBatch } from '../../store/training/batches.ts';
import { loadPolicy } from '../../store/training/checkpoints.ts';
import { checkpointOf } from '../../store/training/find-checkpoints.ts';
import { importModel } from '../../store/training/import-model.ts';
import { readSettings } from '../../workers/settings.ts';
import { serveChild } from '../child.ts';
import { tokensPerSecond } from '../rounded.ts';
import { watchedLearner } from '../installations.ts';
import { ADAM, GRPO } from '../specs.ts';
import { LEARNER, LORA, MODEL } from './spec.ts';

// One part of the work in a process of its own, described by the variables that describe a worker.

type Figure = [name: string, value: number, unit?: 'tokens/s'];
export type BenchPart = keyof typeof parts;

const PROMPT_TOKENS = 32;
const figures: Figure[] = [];
const settings = readSettings();
const store = await ObjectStore.connect(settings.store);

async function timed<T>(name: string, work: () => T | Promise<T>): Promise<T> {
  const start = performance.now();
  const result = await work();
  figures.push([name, (performance.now() - start) / 1000]);
  return result;
}

const tokensOf = (name: string, length: number, vocabSize: number): number[] => {
  const random = new RandomStream(name, length);
  // What lies beyond may have no token.
  return Array.from({ length }, () => random.int(0, Math.floor(vocabSize * 0.9)));
};

async function decode(): Promise<{ figures: Figure[] }> {
  const ref = await checkpointOf(store, { run: MODEL, step: null });
  const decoder = createDecoder({ threads: settings.decoderThreads });
  const { config, weights } = await timed('initial load: from the cache of objects', () =>
    loadPolicy(store, ref),
  );
  await timed('initial load: into the decoder', () => decoder.load('base', config, weights));
  const prefix = tokensOf('prompt', PROMPT_TOKENS, config.vocabSize);
  const sampling = { temperature: 1, topK: 0, topP: 1 };
  const sample = async (session: string, maxNewTokens: number): Promise<void> => {
    const asked = { session, prefix, continuation: [], stopTokens: [], sampling, maxNewTokens };
    await decoder.sample({ ...asked, key: randomKey(session) });
    decoder.release(session);
  };
  for (const batch of [1, 8]) {
    const together = (round: number, count: number) =>
      Promise.all(Array.from({ length: batch }, (_, i) => sample(`${batch}/${round}/${i}`, count)));
    // The prompt is computed once and kept.
    await together(0, 1);
    const start = performance.now();
    await together(1, 32);
    figures.push([
      `decoding at batch ${batch}`,
      (1000 * batch * 32) / (performance.now() - start),
      'tokens/s',
    ]);
  }
  const adapter = { lora: LORA, weights: initialAdapter(config, LORA, 1) };
  for (const [name, { data }] of adapter.weights) if (name.endsWith('.lora_B.weight')) data.fill(1e-3);
  const merged = await timed('merge: adapter of rank 8 into all projections', () =>
    mergeAdapter(config, weights, adapter),
  );
  await timed('hand-over: merged weights into a decoder that has others', () =>
    decoder.load('merged', config, merged),
  );
  await timed('hand-over: prompt and first token', () => sample('first', 1));
  await decoder.close();
  return { figures };
}

/** What a process that never has other weights takes and does. */
async function decodeRounded({ dtype }: { dtype: RolloutDtype }): Promise<{ figures: Figure[] }> {
  const ref = await checkpointOf(store, { run: MODEL, step: null });
  const decoder = createDecoder({ threads: settings.decoderThreads });
  const { config, weights } = await loadPolicy(store, ref);
  await timed(`initial load: into the decoder, weights in ${dtype}`, () =>
    decoder.load('base', config, weights, undefined, dtype),
  );
  for (const batch of [1, 8]) {
    const speed = await tokensPerSecond(decoder, config, { batch, tokens: 32 });
    figures.push([`decoding at batch ${batch}, weights in ${dtype}`, speed, 'tokens/s']);
  }
  await decoder.close();
  return { figures };
}

async function learn(): Promise<{ figures: Figure[] }> {
  let parent = await checkpointOf(store, { run: MODEL, step: null });
  const { config } = await loadPolicy(store, parent);
  const sequences = Array.from({ length: 4 }, (_, i) => {
    const tokens = tokensOf(`sequence ${i}`, 128, config.vocabSize);
    const sampled = (value: number): number[] => tokens.map((_token, at) => (at < PROMPT_TOKENS ? 0 : value));
    const streams = { advantages: sampled(i % 2 === 0 ? 1 : -1), samplerLogprobs: sampled(-11) };
    return { tokens, mask: sampled(1), streams };
  });
  const packed = packBatch(sequences, { minibatch: 4, epochs: 1, seed: 1 });
  const { ref: batch } = await putBatch(store, `runs/${MODEL}/bench/batch`, packed);
  const learner = await createLearner();
  const watched = watchedLearner(learner);
  const training = createTraining({ store, learner: watched.learner });
  for (const [i, what] of ['with loading, sending and tracing', 'again', 'and again'].entries()) {
    const name = `LoRA step of 4 × 128 tokens, ${what}`;
    const request = {
      run: MODEL,
      stage: 'bench',
      stageStep: i + 1,
      step: i + 1,
      parent,
      batch,
      objective: { ...GRPO, maxCompletionTokens: 128, importanceCap: 0 },
      optimizer: ADAM,
      resetOptimizer: false,
      seed: 1,
      reference: null,
      lora: LORA,
      compute: LEARNER,
    };
    const start = performance.now();
    ({ checkpoint: parent } = await training.trainStep(request, new AbortController().signal));
    const whole = (performance.now() - start) / 1000;
    const { updates, seconds } = watched.last;
    figures.push(
      [`${name}, updates`, updates],
      [`${name}, to the learner's process and back`, seconds - updates],
      [`${name}, whole`, whole],
      [`${name}, parent and batch from the store and checkpoint into it`, whole - seconds],
    );
  }
  await learner.close();
  return { figures };
}

const parts = {
  async import({ folder }: { folder: string }): Promise<{ figures: Figure[] }> {
    await timed('import: a folder in bfloat16 into the store', () => importModel(store, folder, MODEL));
    return { figures };
  },
  decode,
  decodeRounded,
  learn,
};
await serveChild(parts);
store.close();
