import { connect } from '../../../activities/rollout/served/connection.ts';
import { tinker } from '../../../activities/rollout/served/tinker.ts';
import { createTraining } from '../../../activities/training/learner.ts';
import { TinkerClient } from '../../../activities/training/tinker/client.ts';
import { createTinkerTraining } from '../../../activities/training/tinker/learner.ts';
import { packBatch } from '../../../activities/training/training-batch.ts';
import type { ModelConfig, Weights } from '../../../core/model/config.ts';
import type { CheckpointRef } from '../../../core/refs.ts';
import type { TrainRequest } from '../../../core/requests/learner.ts';
import { createLocalLearner } from '../../../engine/learner/local-learner.ts';
import { tinkerKey } from '../../../store/keys.ts';
import { putBatch } from '../../../store/training/batches.ts';
import { loadCheckpoint, saveCheckpoint } from '../../../store/training/checkpoints.ts';
import { serverStates } from '../../../store/training/server-states.ts';
import { caseBatch } from '../../support/engine/learner-cases.ts';
import { apart, sizeOf } from '../../support/learner-steps.ts';
import { TestServer } from '../../support/store/server.ts';
import { lora, OBJECTIVES } from '../../support/tinker-server/objectives.ts';

export interface Compared {
  what: string;
  /** Of what is compared: the part of a movement, or nats of a token at most. */
  apart: number;
  bound: number;
  held: boolean;
}

interface Base {
  config: ModelConfig;
  weights: Weights;
  files: Map<string, Uint8Array>;
}

/** What servers differ in. */
interface Traits {
  /** Modules that read the same input have one A. */
  sharesA?: boolean;
  samples?: boolean;
  key?: string;
}

/** Follows the gradient itself: with an ε so large Adam divides by nothing else. */
const DESCENT = { beta1: 0, beta2: 0, epsilon: 1e3, warmupUpdates: 0, maxGradientNorm: 0 };
const ADAM = { ...DESCENT, beta1: 0.9, beta2: 0.999, epsilon: 1e-6 };

/** Modules that read the same input: SkyRL computes them as one, with one A. */
const ONE_A = [
  ['q_proj', 'k_proj', 'v_proj'],
  ['gate_proj', 'up_proj'],
];
const groupOf = (name: string) =>
  name.endsWith('lora_A.weight')
    ? ONE_A.find((group) => group.some((one) => name.includes(`.${one}.`)))
    : undefined;

/** Parts of a movement: of the gradient, and of what Adam makes of it where it is near ε. */
const PART = 1e-4;
const ADAM_PART = 1e-3;
const LOSS = 1e-5;
const NATS = 1e-4;

/** Steps of the server and ours from the same adapter; the first two updates of a fresh one have gradients that can be compared. */
export async function compareSteps(
  url: string,
  { config, weights, files }: Base,
  { sharesA = false, samples = false, key }: Traits,
  say: (text: string) => void,
): Promise<Compared[]> {
  const kept = await TestServer.start();
  const store = await kept.connect();
  const signal = AbortSignal.timeout(3_600_000);
  const learner = await createLocalLearner();
  const there = createTinkerTraining({
    store,
    client: new TinkerClient(connect(url, 600, key), 600),
    key,
    reference: () => createLocalLearner(),
  });
  const here = createTraining({ store, learner });
  const compared: Compared[] = [];
  const put = (what: string, value: number, bound: number): void => {
    compared.push({ what, apart: value, bound, held: value <= bound });
    say(`${what}: ${value.toPrecision(3)} (at most ${bound})`);
  };
  const weightsOf = async (ref: CheckpointRef) => (await loadCheckpoint(store, ref)).state.adapter!.weights;
  let last: { run: string; ref: CheckpointRef } | undefined;

  for (const [name, adam] of [
    ...Object.keys(OBJECTIVES).map((one) => [one, false] as const),
    ['supervised', true] as const,
  ]) {
    const run = adam ? `${name}-adam` : name;
    const objective = OBJECTIVES[name]!;
    const optimizer = adam ? { ...ADAM, learningRate: 1e-3 } : { ...DESCENT, learningRate: 50 };
    const state = { config, weights, firstMoments: new Map(), secondMoments: new Map(), updates: 0 };
    const begun = { stage: 'initialize', step: 0, backend: 'none', createdBy: 'parity', state, files };
    const first = await saveCheckpoint(store, { run, ...begun });
    // Two updates of all sequences.
    const batch = caseBatch({ name, objective, updates: { minibatch: 1000, epochs: 2 } });
    const { ref } = await putBatch(store, `runs/${run}/own.safetensors`, batch);
    const asked = (of: string, step: number, parent: CheckpointRef): TrainRequest => ({
      run: of,
      stage: 'rl',
      stageStep: step,
      step,
      parent,
      batch: ref,
      objective,
      optimizer,
      resetOptimizer: true,
      seed: 11,
      reference: null,
      lora,
    });
    // The server draws A: a step at rate 0 brings it here.
    const still = { ...asked(run, 1, first), optimizer: { ...optimizer, learningRate: 0 } };
    const start = (await there.trainStep(still, signal)).checkpoint;
    const theirs = await there.trainStep(asked(run, 2, start), signal);
    const ours = await here.trainStep(asked(`${run}-here`, 2, start), signal);
    const before = await weightsOf(start);
    const [made, expected] = [theirs, ours].map(async ({ checkpoint }) =>
      moved(before, await weightsOf(checkpoint)),
    );
    const [one, other] = [await made!, await expected!].map((of) => (adam && sharesA ? ofTheirOwn(of) : of));
    const sum = adam || !sharesA ? other! : withOneA(other!);
    put(`${run}: what two updates have moved`, apart(one!, sum) / sizeOf(sum), adam ? ADAM_PART : PART);
    put(`${run}: loss`, Math.abs(theirs.metrics.loss! - ours.metrics.loss!), LOSS);
    last = { run, ref: theirs.checkpoint };
  }

  const { run, ref } = last!;
  if (!samples) return closed();
  const tokens = [3, 9, 27, 41, 5, 17];
  const api = tinker(connect(url, 600));
  const { state } = await loadCheckpoint(store, ref);
  const saved = (await store.find(tinkerKey(run, ref.weights), serverStates, { signal }))!;
  await api.loadAdapter('sampled', saved.state, signal);
  const ownOf = async (of: readonly number[]) => {
    const mask = of.map((_, i) => (i === 0 ? 0 : 1));
    const one = packBatch([{ tokens: [...of], mask, streams: {} }], { minibatch: 1, epochs: 0, seed: 0 });
    return [
      ...(await learner.score(state, one, { logprobs: { temperature: 1, topK: 0 } })).logprobs!.subarray(1),
    ];
  };
  const gap = (a: readonly number[], b: readonly number[]) =>
    a.length === b.length
      ? Math.max(...a.map((value, i) => Math.abs(value - b[i]!)))
      : Number.POSITIVE_INFINITY;
  const at = { model: 'sampled', tokens, salt: ref.weights };
  put('policy: log-probs of a prompt', gap(await api.score(at, signal), await ownOf(tokens)), NATS);
  const drawn = await api.sample(
    { ...at, maxNewTokens: 8, stopTokens: [2], temperature: 1, seed: 3 },
    signal,
  );
  const own = (await ownOf([...tokens, ...drawn.tokens])).slice(tokens.length - 1);
  put('policy: log-probs of what was sampled', gap(drawn.logprobs, own), NATS);
  await api.unloadAdapter('sampled', signal);
  return closed();

  async function closed(): Promise<Compared[]> {
    there.close();
    await learner.close();
    store.close();
    await kept.remove();
    return compared;
  }
}

/** What weights have moved by. */
const moved = (before: Weights, after: Weights): Weights =>
  new Map(
    [...after].map(([name, { shape, data }]) => [
      name,
      { shape, data: data.map((value, i) => value - before.get(name)!.data[i]!) },
    ]),
  );

/** The gradient of an A that modules share is the sum of what each would have. */
const withOneA = (steps: Weights): Weights =>
  new Map(
    [...steps].map(([name, { shape, data }]) => {
      const group = groupOf(name);
      if (group === undefined) return [name, { shape, data }];
      const all = group.map((one) => steps.get(name.replace(/\w+_proj/, one))!.data);
      return [name, { shape, data: data.map((_, i) => all.reduce((sum, each) => sum + each[i]!, 0)) }];
    }),
  );

/** Without those that modules share, of which Adam makes no sum. */
const ofTheirOwn = (steps: Weights): Weights =>
  new Map([...steps].filter(([name]) => groupOf(name) === undefined));
