import { writeFile } from 'node:fs/promises';
import { updatesOf } from '../../activities/training/updates.ts';
import { randomKey } from '../../core/random.ts';
import type { RolloutDtype } from '../../core/schema/policy.ts';
import { createDecoder } from '../../engine/decoder/decoder.ts';
import { backendName } from '../../engine/decoder/load-backend.ts';
import { loadHfDirectory } from '../../engine/hf-directory.ts';
import { DEFAULT_COMPUTE } from '../../engine/learner/contract.ts';
import type { Learner, TrainBatch, TrainState } from '../../engine/learner/contract.ts';
import { createLocalLearner } from '../../engine/learner/local-learner.ts';
import type { LocalPolicy } from '../../engine/policy.ts';
import { bytes, freshState } from '../../test/support/engine/tiny.ts';
import { serveChild } from '../child.ts';
import { ADAM } from '../specs.ts';

// Our engines with the operations of the anchors (anchors/*.py), in a process of their own as well.

let policy: LocalPolicy | undefined;
let learner: Learner | undefined;
let state: TrainState;
let precision: 'float32' | 'bfloat16';
let runs = 0;

interface Asked {
  prompts: number[][];
  new_tokens: number;
  top_p?: number;
}

/** All prompts at once, greedily where there is no `top_p`. */
async function continued({ prompts, new_tokens, top_p = 0 }: Asked, run = String(++runs)) {
  const sessions = prompts.map((prompt, i) => sample(`${run}/${i}`, prompt, [], new_tokens, top_p));
  const drawn = await Promise.all(sessions);
  prompts.forEach((_, i) => policy!.release(`${run}/${i}`));
  return drawn;
}

function sample(
  session: string,
  prefix: number[],
  continuation: readonly number[],
  maxNewTokens: number,
  topP: number,
  mask?: readonly number[],
) {
  const sampling = { temperature: topP > 0 ? 1 : 0, topK: 0, topP: topP > 0 ? topP : 1 };
  const asked = { session, prefix, continuation, ...(mask && { mask }), maxNewTokens, stopTokens: [] };
  return policy!.sample({ ...asked, sampling, key: randomKey(session) });
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

await serveChild({
  async loadDecoder({ folder, threads, dtype }: { folder: string; threads: number; dtype?: RolloutDtype }) {
    const { config, weights } = await loadHfDirectory(folder);
    policy = createDecoder({ threads });
    await policy.load('bench', config, weights, undefined, dtype);
    return { backend: backendName() };
  },

  async loadLearner(asked: { folder: string; precision: 'float32' | 'bfloat16' }) {
    const { config, weights } = await loadHfDirectory(asked.folder);
    learner = await createLocalLearner({ mode: 'traced' });
    state = freshState(config, weights);
    ({ precision } = asked);
    return { backend: learner.backend };
  },

  /** What prompts are continued with, by themselves or beside others, and how likely each token was. */
  async logprobs(asked: Asked) {
    // A greedy token has no log-prob, and drawn ones are the same where their keys are.
    const drawn = await continued({ ...asked, top_p: 1 }, 'logprobs');
    return {
      tokens: drawn.map(({ tokens }) => [...tokens]),
      logprobs: drawn.map(({ samplerLogprobs }) => [...samplerLogprobs]),
    };
  },

  async greedy({ prompt, new_tokens }: { prompt: number[]; new_tokens: number }) {
    const [drawn] = await continued({ prompts: [prompt], new_tokens });
    return { tokens: [...drawn!.tokens] };
  },

  async decode(asked: Asked) {
    await continued(asked);
    return {};
  },

  /** A group with a shared prompt; after each turn a tool's result is appended. */
  async turns(asked: {
    prompt: number[];
    samples: number;
    results: number[][];
    new_tokens: number;
    top_p: number;
  }) {
    const { prompt, samples, results, new_tokens, top_p } = asked;
    const run = ++runs;
    const episode = async (_: unknown, i: number): Promise<void> => {
      const [continuation, mask]: [number[], number[]] = [[], []];
      for (const result of results) {
        const { tokens } = await sample(`${run}/${i}`, prompt, continuation, new_tokens, top_p, mask);
        continuation.push(...tokens, ...result);
        mask.push(...tokens.map(() => 1), ...result.map(() => 0));
      }
      policy!.release(`${run}/${i}`);
    };
    await Promise.all(Array.from({ length: samples }, episode));
    return {};
  },

  /** One optimizer update for each batch [B, T], in one learner step. */
  async steps({ tokens }: { tokens: number[][][] }) {
    const rows = tokens.flat();
    ({ state } = await learner!.step(state, batchOf(rows, rows.length / tokens.length), {
      objective: { kind: 'supervised' },
      optimizer: ADAM,
      compute: { ...DEFAULT_COMPUTE, precision },
    }));
    return {};
  },

  /** The weights as they are now, end to end, in a file. */
  async writeWeights({ file }: { file: string }) {
    await writeFile(file, bytes(state.weights));
    return {};
  },
});
await policy?.close();
await learner?.close();
