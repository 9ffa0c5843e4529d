import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { updatesOf } from '../../activities/training/updates.ts';
import { messageOf } from '../../core/errors.ts';
import type { Json } from '../../core/json/json.ts';
import { randomKey } from '../../core/random.ts';
import { createDecoder } from '../../engine/decoder/decoder.ts';
import { backendName } from '../../engine/decoder/load-backend.ts';
import { loadHfDirectory } from '../../engine/hf-directory.ts';
import type { HfModel } from '../../engine/hf-directory.ts';
import { DEFAULT_COMPUTE } from '../../engine/learner/contract.ts';
import type { Learner, TrainBatch, TrainState } from '../../engine/learner/contract.ts';
import { createLocalLearner } from '../../engine/learner/local-learner.ts';
import type { LocalPolicy } from '../../engine/policy.ts';
import { ADAM } from '../adam.ts';

// Our engines behind the same JSON lines as the anchors (anchors/protocol.py), in a process of their own as well.

interface Loaded {
  model: HfModel;
  policy?: LocalPolicy;
  learner?: Learner;
  state?: TrainState;
  precision: 'float32' | 'bfloat16';
}
let loaded: Loaded;
let runs = 0;

const sampled = (topP: number) => ({ temperature: topP > 0 ? 1 : 0, topK: 0, topP: topP > 0 ? topP : 1 });

const operations = {
  async loadDecoder({ folder, threads }: { folder: string; threads: number }) {
    const model = await loadHfDirectory(folder);
    const policy = createDecoder({ threads });
    await policy.load('bench', model.config, model.weights);
    loaded = { model, policy, precision: 'float32' };
    return { backend: backendName() };
  },

  async loadLearner({ folder, precision }: { folder: string; precision: 'float32' | 'bfloat16' }) {
    const model = await loadHfDirectory(folder);
    const learner = await createLocalLearner({ mode: 'traced' });
    const { config, weights } = model;
    const state = { config, weights, firstMoments: new Map(), secondMoments: new Map(), updates: 0 };
    loaded = { model, learner, state, precision };
    return { backend: learner.backend };
  },

  /** What a prompt is continued with, by itself or beside others, and how likely each token was. */
  async logprobs({ prompts, new_tokens }: { prompts: number[][]; new_tokens: number }) {
    const run = ++runs;
    const sampled = await Promise.all(
      prompts.map((prompt, i) => sample(`${run}/${i}`, prompt, [], new_tokens, 0)),
    );
    prompts.forEach((_, i) => loaded.policy!.release(`${run}/${i}`));
    return {
      tokens: sampled.map(({ tokens }) => [...tokens]),
      logprobs: sampled.map(({ samplerLogprobs }) => [...samplerLogprobs]),
    };
  },

  /** The weights as they are now, end to end, in a file. */
  async writeWeights({ file }: { file: string }) {
    const { weights } = loaded.state!;
    await writeFile(file, Buffer.concat([...weights.values()].map(({ data }) => bytesOf(data))));
    return {};
  },

  async greedy({ prompt, new_tokens }: { prompt: number[]; new_tokens: number }) {
    const { tokens } = await sample(`greedy ${++runs}`, prompt, [], new_tokens, 0);
    return { tokens };
  },

  async decode({ prompts, new_tokens, top_p }: { prompts: number[][]; new_tokens: number; top_p: number }) {
    const run = ++runs;
    await Promise.all(prompts.map((prompt, i) => sample(`${run}/${i}`, prompt, [], new_tokens, top_p)));
    prompts.forEach((_, i) => loaded.policy!.release(`${run}/${i}`));
    return { tokens: prompts.length * new_tokens };
  },

  async turns(request: {
    prompt: number[];
    samples: number;
    results: number[][];
    new_tokens: number;
    top_p: number;
  }) {
    const { prompt, samples, results, new_tokens, top_p } = request;
    const run = ++runs;
    await Promise.all(
      Array.from({ length: samples }, async (_, i) => {
        const continuation: number[] = [];
        const mask: number[] = [];
        for (const result of results) {
          const { tokens } = await sample(`${run}/${i}`, prompt, continuation, new_tokens, top_p, mask);
          continuation.push(...tokens, ...result);
          mask.push(...tokens.map(() => 1), ...result.map(() => 0));
        }
        loaded.policy!.release(`${run}/${i}`);
      }),
    );
    return { tokens: samples * new_tokens * results.length };
  },

  /** One optimizer update for each batch [B, T], in one learner step. */
  async steps({ tokens }: { tokens: number[][][] }) {
    const { learner, state, precision } = loaded;
    const rows = tokens.flat();
    const minibatch = rows.length / tokens.length;
    const { state: next, metrics } = await learner!.step(state!, batchOf(rows, minibatch), {
      objective: { kind: 'supervised' },
      optimizer: ADAM,
      compute: { ...DEFAULT_COMPUTE, precision },
    });
    loaded.state = next;
    return { losses: [metrics.loss] };
  },
};

const bytesOf = (data: Float32Array): Uint8Array =>
  new Uint8Array(data.buffer, data.byteOffset, data.byteLength);

function sample(
  session: string,
  prefix: number[],
  continuation: readonly number[],
  maxNewTokens: number,
  topP: number,
  mask?: readonly number[],
) {
  const key = randomKey(session);
  const sampling = sampled(topP);
  return loaded.policy!.sample({
    session,
    prefix,
    continuation,
    ...(mask && { mask }),
    maxNewTokens,
    stopTokens: [],
    sampling,
    key,
  });
}

/** Full rows, in which every token but the first is predicted. */
function batchOf(rows: readonly number[][], minibatch: number): TrainBatch {
  const length = rows[0]!.length;
  const tokens = Int32Array.from(rows.flat());
  return {
    tokens,
    offsets: Int32Array.from({ length: rows.length + 1 }, (_, i) => i * length),
    mask: Float32Array.from(tokens, (_, i) => (i % length === 0 ? 0 : 1)),
    streams: { advantages: new Float32Array(tokens.length).fill(1) },
    sequences: {},
    updates: updatesOf(rows.length, { minibatch, epochs: 1, seed: 1 }),
  };
}

async function answer(line: string): Promise<{ [field: string]: unknown }> {
  const { op, ...request } = JSON.parse(line) as { op: keyof typeof operations; [field: string]: Json };
  const run = operations[op] as (request: object) => Promise<object>;
  const started = performance.now();
  try {
    const result = await run(request);
    return {
      seconds: (performance.now() - started) / 1000,
      peakBytes: process.resourceUsage().maxRSS * 1024,
      ...result,
    };
  } catch (error) {
    return { error: messageOf(error) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await answer(line))}\n`);
}
await loaded!.policy?.close();
await loaded!.learner?.close();
