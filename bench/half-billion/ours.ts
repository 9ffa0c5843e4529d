import { updatesOf } from '../../activities/training/updates.ts';
import { randomKey } from '../../core/random.ts';
import type { LearnerSpec } from '../../core/schema/learner.ts';
import type { LoraSpec } from '../../core/schema/lora.ts';
import type { RolloutDtype } from '../../core/schema/policy.ts';
import { createDecoder } from '../../engine/decoder/decoder.ts';
import { loadHfDirectory } from '../../engine/hf-directory.ts';
import type { Learner, TrainState } from '../../engine/learner/contract.ts';
import { createLocalLearner } from '../../engine/learner/local-learner.ts';
import { initialAdapter } from '../../engine/lora/initial-adapter.ts';
import type { LocalPolicy } from '../../engine/policy.ts';
import { pageAligned } from '../../engine/page-aligned.ts';
import { freshState } from '../../test/support/engine/tiny.ts';
import { serveChild } from '../child.ts';
import { ADAM, GRPO } from '../specs.ts';

// Our decoder and learner in one process, as TRL has both: a group is sampled and learnt from, and the decoder gets what came
// of it.

let policy: LocalPolicy | undefined;
let learner: Learner | undefined;
let state: TrainState;
let compute: LearnerSpec;
let rolloutDtype: RolloutDtype;
let steps = 0;

interface Asked {
  prompt: number[];
  samples: number;
  newTokens: number;
}

/** Rows of the prompt and what was sampled, and how likely that was. */
async function sampled({ prompt, samples, newTokens }: Asked) {
  const step = ++steps;
  const sampling = { temperature: 1, topK: 0, topP: 1 };
  const draws = Array.from({ length: samples }, async (_, i) => {
    const session = `${step}/${i}`;
    const asked = { session, prefix: prompt, continuation: [], stopTokens: [], maxNewTokens: newTokens };
    const { tokens, samplerLogprobs } = await policy!.sample({ ...asked, sampling, key: randomKey(session) });
    policy!.release(session);
    return { row: [...prompt, ...tokens], logprobs: [...samplerLogprobs] };
  });
  return Promise.all(draws);
}

/** One update on the group, of which every other sample is better than the mean. */
async function learn(group: { row: number[]; logprobs: number[] }[], promptTokens: number): Promise<void> {
  const of = (value: (sample: number, at: number) => number): Float32Array =>
    Float32Array.from(
      group.flatMap(({ row }, i) =>
        row.map((_, at) => (at < promptTokens ? 0 : value(i, at - promptTokens))),
      ),
    );
  let end = 0;
  const batch = {
    tokens: Int32Array.from(group.flatMap(({ row }) => row)),
    offsets: Int32Array.from([0, ...group.map(({ row }) => (end += row.length))]),
    mask: of(() => 1),
    streams: {
      advantages: of((i) => (i % 2 === 0 ? 1 : -1)),
      samplerLogprobs: of((i, at) => group[i]!.logprobs[at]!),
    },
    sequences: {},
    updates: updatesOf(group.length, { minibatch: group.length, epochs: 1, seed: 1 }),
  };
  ({ state } = await learner!.step(state, batch, { objective: GRPO, optimizer: ADAM, compute }));
}

async function seconds(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

await serveChild({
  async load(asked: {
    folder: string;
    threads: number;
    lora: LoraSpec;
    compute: LearnerSpec;
    rolloutDtype: RolloutDtype;
  }) {
    const { config, weights } = await loadHfDirectory(asked.folder);
    // As what passes to a learner's process is.
    for (const [name, { shape, data: given }] of weights) {
      const data = new Float32Array(pageAligned(given.byteLength));
      data.set(given);
      weights.set(name, { shape, data });
    }
    ({ compute, rolloutDtype } = asked);
    policy = createDecoder({ threads: asked.threads });
    await policy.load('0', config, weights, undefined, rolloutDtype);
    learner = await createLocalLearner({ mode: 'traced' });
    const adapter = { lora: asked.lora, weights: initialAdapter(config, asked.lora, 1) };
    state = { ...freshState(config, weights), adapter };
    return { backend: learner.backend };
  },

  /** One step: a rollout of a group, an update on it, and the hand-over of what came of it. */
  async step(asked: Asked) {
    let group: Awaited<ReturnType<typeof sampled>> = [];
    const rollout = await seconds(async () => void (group = await sampled(asked)));
    const update = await seconds(() => learn(group, asked.prompt.length));
    const handOver = await seconds(() =>
      policy!.load(String(steps), state.config, state.weights, state.adapter, rolloutDtype),
    );
    return { rollout, learn: update, handOver };
  },
});
await policy?.close();
await learner?.close();
