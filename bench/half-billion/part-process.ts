import { createTraining } from '../../activities/training/learner.ts';
import { putBatch } from '../../store/training/batches.ts';
import { loadPolicy } from '../../store/training/checkpoints.ts';
import { checkpointOf } from '../../store/training/find-checkpoints.ts';
import { importModel } from '../../store/training/import-model.ts';
import { ObjectStore } from '../../store/objects/object-store.ts';
import { packBatch } from '../../activities/training/training-batch.ts';
import { randomKey, RandomStream } from '../../core/random.ts';
import type { TrainRequest } from '../../core/requests.ts';
import { createDecoder } from '../../engine/decoder/decoder.ts';
import { createLearner } from '../../engine/learner/process/remote-learner.ts';
import { initialAdapter } from '../../engine/lora/initial-adapter.ts';
import { mergeAdapter } from '../../engine/lora/merge-adapter.ts';
import { readSettings } from '../../workers/settings.ts';
import { ADAM } from '../adam.ts';
import { GRPO } from '../grpo-objective.ts';
import { LEARNER, LORA, MODEL } from './spec.ts';

// One part of the work in a process of its own, so that its memory is its own. It is described by the variables that
// describe a worker, and tells its figures to whoever started it.

export interface Figure {
  case: string;
  value: number;
  unit: 's' | 'tokens/s';
}
export interface PartMeasurement {
  figures: Figure[];
  /** Of this process; what the learner's own process needs is watched from outside. */
  peakMegabytes: number;
}

const PROMPT_TOKENS = 32;
const figures: Figure[] = [];

async function timed<T>(name: string, work: () => T | Promise<T>): Promise<T> {
  const start = performance.now();
  const result = await work();
  figures.push({ case: name, value: (performance.now() - start) / 1000, unit: 's' });
  return result;
}

const tokensOf = (name: string, length: number, vocabSize: number): number[] => {
  const random = new RandomStream(name, length);
  // What lies beyond may have no token.
  return Array.from({ length }, () => random.int(0, Math.floor(vocabSize * 0.9)));
};

const parts = {
  async import(store: ObjectStore, folder: string): Promise<void> {
    await timed('import: a folder in bfloat16 into the store', () => importModel(store, folder, MODEL));
  },

  async decode(store: ObjectStore, _folder: string, threads: number): Promise<void> {
    const ref = await checkpointOf(store, { run: MODEL, step: null });
    const decoder = createDecoder({ threads });
    const { config, weights } = await timed('initial load: from the cache of objects', () =>
      loadPolicy(store, ref),
    );
    await timed('initial load: into the decoder', () => decoder.load('base', config, weights));
    const prefix = tokensOf('prompt', PROMPT_TOKENS, config.vocabSize);
    for (const batch of [1, 8]) {
      const maxNewTokens = 32;
      const decode = (round: number, count: number) =>
        Promise.all(
          Array.from({ length: batch }, async (_, i) => {
            const session = `${batch}/${round}/${i}`;
            const sampling = { temperature: 1, topK: 0, topP: 1 };
            const key = randomKey(session);
            const asked = { session, prefix, continuation: [], stopTokens: [], sampling, key };
            await decoder.sample({ ...asked, maxNewTokens: count });
            decoder.release(session);
          }),
        );
      // The prompt is computed once and kept.
      await decode(0, 1);
      const start = performance.now();
      await decode(1, maxNewTokens);
      const seconds = (performance.now() - start) / 1000;
      figures.push({
        case: `decoding at batch ${batch}`,
        value: (batch * maxNewTokens) / seconds,
        unit: 'tokens/s',
      });
    }
    const adapter = { lora: LORA, weights: initialAdapter(config, LORA, 1) };
    for (const [name, { data }] of adapter.weights) if (name.endsWith('.lora_B.weight')) data.fill(1e-3);
    const merged = await timed('merge: adapter of rank 8 into all projections', () =>
      mergeAdapter(config, weights, adapter),
    );
    await timed('hand-over: merged weights into a decoder that has others', () =>
      decoder.load('merged', config, merged),
    );
    await timed('hand-over: prompt and first token', () =>
      decoder.sample({
        session: 'first',
        prefix,
        continuation: [],
        maxNewTokens: 1,
        stopTokens: [],
        sampling: { temperature: 1, topK: 0, topP: 1 },
        key: randomKey('first'),
      }),
    );
    await decoder.close();
  },

  async learn(store: ObjectStore): Promise<void> {
    let parent = await checkpointOf(store, { run: MODEL, step: null });
    const { config } = await loadPolicy(store, parent);
    const sequences = Array.from({ length: 4 }, (_, i) => {
      const tokens = tokensOf(`sequence ${i}`, 128, config.vocabSize);
      return {
        tokens,
        mask: tokens.map((_token, at) => (at < PROMPT_TOKENS ? (0 as const) : (1 as const))),
        streams: {
          advantages: tokens.map((_token, at) => (at < PROMPT_TOKENS ? 0 : i % 2 === 0 ? 1 : -1)),
          samplerLogprobs: tokens.map((_token, at) => (at < PROMPT_TOKENS ? 0 : -11)),
        },
      };
    });
    const { ref: batch } = await putBatch(
      store,
      `runs/${MODEL}/bench/batch`,
      packBatch(sequences, { minibatch: 4, epochs: 1, seed: 1 }),
    );
    const learner = await createLearner();
    const watched: typeof learner = {
      ...learner,
      step: async (...args) => {
        const start = performance.now();
        const result = await learner.step(...args);
        const { seconds } = result.metrics;
        const sending = (performance.now() - start) / 1000 - seconds;
        figures.push({ case: `${name}, updates`, value: seconds, unit: 's' });
        figures.push({ case: `${name}, to the learner's process and back`, value: sending, unit: 's' });
        return result;
      },
    };
    let name = '';
    const training = createTraining({ store, learner: watched });
    for (let step = 1; step <= 3; step++) {
      const what = ['', 'with loading, sending and tracing', 'again', 'and again'][step]!;
      name = `LoRA step of 4 × 128 tokens, ${what}`;
      const request: TrainRequest = {
        run: MODEL,
        stage: 'bench',
        stageStep: step,
        step,
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
      const before = figures.length;
      const { checkpoint } = await timed(`${name}, whole`, () =>
        training.trainStep(request, new AbortController().signal),
      );
      parent = checkpoint;
      const [updates, sent, whole] = figures.slice(before);
      figures.push({
        case: `${name}, parent and batch from the store and checkpoint into it`,
        value: whole!.value - updates!.value - sent!.value,
        unit: 's',
      });
    }
    await learner.close();
  },
};

const [part, folder] = process.argv.slice(2) as [keyof typeof parts, string];
const settings = readSettings();
const store = await ObjectStore.connect(settings.store);
process.once('disconnect', () => process.exit());
await parts[part](store, folder, settings.decoderThreads);
store.close();
const measured: PartMeasurement = { figures, peakMegabytes: process.resourceUsage().maxRSS / 1024 };
process.send!(measured);
process.disconnect();
