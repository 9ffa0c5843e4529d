import { GradusError } from '../../../core/errors.ts';
import type { ModelConfig } from '../../../core/model/config.ts';
import { LORA_MODULES } from '../../../core/names.ts';
import type { CheckpointRef } from '../../../core/refs.ts';
import type { ScoreRequest } from '../../../core/requests/batch.ts';
import type {
  LearnerMetrics,
  ProbeRequest,
  TrainRequest,
  TrainResult,
} from '../../../core/requests/learner.ts';
import type { RewardQualityRequest } from '../../../core/requests/reward-model.ts';
import type { JudgeRequest } from '../../../core/requests/verification.ts';
import type { Learner, TrainBatch, TrainState } from '../../../engine/learner/contract.ts';
import { effectiveSamples } from '../../../engine/learner/step/effective-samples.ts';
import { gapByStaleness, ownGap, refuseGap } from '../../../engine/learner/step/logprob-gap.ts';
import { metricsKey, probeKey, tinkerKey } from '../../../store/keys.ts';
import type { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadBatch } from '../../../store/training/batches.ts';
import { loadCheckpoint, saveCheckpoint } from '../../../store/training/checkpoints.ts';
import { CREATED_BY } from '../../../store/training/manifest.ts';
import { probes } from '../../../store/training/probes.ts';
import { serverStates } from '../../../store/training/server-states.ts';
import type { ServerState } from '../../../store/training/server-states.ts';
import { stepRecords } from '../../../store/training/step-records.ts';
import { probeOf, probeTokens } from '../probe.ts';
import { downloadAdapter } from './adapter-archive.ts';
import { assertTinkerCan, lacks, lookAt, TINKER_ALPHA } from './capabilities.ts';
import type { TinkerObjective, TinkerServer } from './capabilities.ts';
import type { TinkerClient } from './client.ts';
import { lossOf, readsNow, tinkerUpdate } from './datums.ts';
import { LEAVING, TrainedModel } from './trained-model.ts';
import { timeoutSignal } from '../../../core/timeout-signal.ts';

export interface TinkerDependencies {
  store: ObjectStore;
  client: TinkerClient;
  key?: string | undefined;
  /** What the server calls the model that is trained; the first that it lists where it is absent. */
  baseModel?: string | undefined;
  /** Computes once, for a fixed sequence, what the server's base is compared with. Absent: nobody compares. */
  reference?: () => Promise<Learner>;
}

const FRESH = { rank: 1, alpha: TINKER_ALPHA, rsLora: false, targetModules: [...LORA_MODULES] };

/** Nats in the mean over the fixed sequence: a base whose log-probs differ by more is another one. */
const SAME_BASE = 0.05;

/** A learner's activities (docs/learner-contract.md), by a server that speaks Tinker's API. */
export function createTinkerTraining({ store, client, key, baseModel, reference }: TinkerDependencies) {
  let server: TinkerServer | undefined;
  // The model of the last step that ended well, by the weights where it stands.
  let live: { weights: string; model: TrainedModel } | undefined;

  const look = async (signal: AbortSignal): Promise<TinkerServer> =>
    (server ??= await lookAt(client, signal, baseModel));

  /** Nobody knows where a model stands whose step did not end. */
  const leave = async (signal: AbortSignal): Promise<void> => {
    const left = live;
    live = undefined;
    await left?.model.unload(signal);
  };

  const stateOf = (
    run: string,
    { weights }: CheckpointRef,
    signal: AbortSignal,
  ): Promise<ServerState | null> => store.find(tinkerKey(run, weights), serverStates, { signal });

  /** A model that stands at this checkpoint. */
  const modelAt = async (
    { run, parent, lora, seed, compute }: Pick<TrainRequest, 'run' | 'parent' | 'lora' | 'seed' | 'compute'>,
    state: TrainState,
    signal: AbortSignal,
  ): Promise<TrainedModel> => {
    const from = await stateOf(run, parent, signal);
    if (from === null && state.adapter)
      throw lacks(
        `the state of ${parent.manifest.key}, which another learner made`,
        'go on with that one, or begin a run here',
      );
    const known = lora ?? state.adapter?.lora;
    if (known === undefined) throw lacks('training of all weights', 'give model.lora');
    const model = await TrainedModel.open(
      client,
      await look(signal),
      { lora: known, seed, from: from ?? undefined, mostTokens: compute?.microBatchTokens || undefined },
      signal,
    );
    if (from !== null) return model;
    try {
      await assertSameBase(model, state, signal);
      return model;
    } catch (error) {
      await model.unload(timeoutSignal(LEAVING));
      throw error;
    }
  };

  /** Throws GradusError('learner', 'settings') where the server trains another model than the run begins with. */
  const assertSameBase = async (
    model: TrainedModel,
    state: TrainState,
    signal: AbortSignal,
  ): Promise<void> => {
    if (reference === undefined) return;
    const learner = await reference();
    try {
      const ours = await probeOf(learner, state, signal);
      const theirs = await scoreProbe(model, state.config, signal);
      const gap =
        ours.logprobs.reduce((sum, one, i) => sum + Math.abs(one - theirs[i]!), 0) / ours.logprobs.length;
      if (!(gap <= SAME_BASE))
        throw lacks(
          `the model that the run begins with: a fixed sequence is ${gap.toPrecision(3)} nats a token apart`,
          'start the server with that model (gradus export writes its folder)',
        );
    } finally {
      await learner.close();
    }
  };

  /** Computes a step on the server, and stores nothing. */
  const learn = async (
    request: TrainRequest,
    objective: TinkerObjective,
    parent: { state: TrainState; updates: number },
    batch: TrainBatch,
    signal: AbortSignal,
  ) => {
    if (live?.weights !== request.parent.weights) {
      await leave(signal);
      live = { weights: '', model: await modelAt(request, parent.state, signal) };
    }
    const { model } = live;
    // Until the step has ended it stands nowhere that is known.
    live = { weights: '', model };
    // What has no advantage moves nothing, and counts in the means all the same.
    const moves = (sequence: number): boolean => {
      for (let i = batch.offsets[sequence]!; i < batch.offsets[sequence + 1]!; i++)
        if (batch.mask[i] === 1 && batch.streams.advantages![i] !== 0) return true;
      return false;
    };
    const moving = [...new Set(batch.updates.flatMap((update) => [...update]))].filter(moves);
    // A demonstration was not sampled, and its loss reads nothing of before.
    const compared = objective.kind !== 'supervised';
    const old = compared
      ? await model.logprobs(batch, moving, signal)
      : new Float32Array(batch.tokens.length);
    const gap = compared ? ownGap(batch, moving, old) : { logprobGapMax: null, logprobGapMean: null };
    refuseGap(gap.logprobGapMean, request.maxLogprobGap);
    if (request.resetOptimizer && parent.updates > 0) await model.forgetMoments(signal);
    let updates = request.resetOptimizer ? 0 : parent.updates;
    const sums = { loss: 0, norm: 0, clipped: 0, counted: 0, tokens: 0 };
    let norms = 0;
    for (const [u, update] of batch.updates.entries()) {
      const own = [...update].filter(moves);
      const reads = readsNow(objective, batch, model.reduces);
      const now = reads && (u > 0 || !compared) ? await model.logprobs(batch, own, signal) : old;
      const asked = tinkerUpdate(objective, batch, update, { old, now }, model.reduces);
      const logprobs = await model.addGradient(asked, batch, signal);
      const { loss, clipped } = lossOf(asked, batch, logprobs);
      if (!Number.isFinite(loss))
        throw new GradusError('learner', 'diverged', `update ${u + 1} has a loss of ${loss}: lower the rate`);
      const norm = await model.move(request.optimizer, ++updates, signal);
      sums.loss += loss;
      sums.clipped += clipped;
      if (norm !== null) {
        sums.norm += norm;
        norms++;
      }
      for (const sequence of own) {
        sums.tokens += batch.offsets[sequence + 1]! - batch.offsets[sequence]!;
        for (let i = batch.offsets[sequence]!; i < batch.offsets[sequence + 1]!; i++)
          sums.counted += batch.mask[i]!;
      }
    }
    const weighs = 'importanceCap' in objective && objective.importanceCap > 0;
    const effective = compared && weighs && effectiveSamples(batch, moving, old);
    const metrics: Omit<LearnerMetrics, 'seconds'> = {
      loss: sums.loss / batch.updates.length,
      // A mean of another reduction is not Gradus' gradient, but its multiple is: datums have the factor.
      gradientNorm: norms === batch.updates.length ? sums.norm / norms : null,
      entropy: null,
      kl: null,
      clipFraction: ['clipped', 'cispo'].includes(objective.kind)
        ? sums.clipped / Math.max(1, sums.counted)
        : null,
      ...gap,
      ...(compared && gapByStaleness(batch, moving, old)),
      ...(effective && { effectiveSamples: effective }),
      updates: batch.updates.length,
      tokens: sums.tokens,
    };
    return { model, updates, metrics };
  };

  const refuse = (what: string) => (): Promise<never> =>
    Promise.reject(lacks(what, 'choose a method that needs none, or train with another learner'));

  return {
    scoreTokens: refuse('scores of tokens before their advantages') as (
      request: ScoreRequest,
      signal: AbortSignal,
    ) => Promise<never>,
    judgeEpisodes: refuse('reward models') as (request: JudgeRequest, signal: AbortSignal) => Promise<never>,
    rewardQuality: refuse('reward models') as (
      request: RewardQualityRequest,
      signal: AbortSignal,
    ) => Promise<never>,

    /** What the server makes of the fixed sequence under a checkpoint; one without an adapter is its base. */
    async probePolicy({ run, checkpoint }: ProbeRequest, signal: AbortSignal): Promise<void> {
      const at = probeKey(run, checkpoint.weights);
      if (await store.head(at, { signal })) return;
      const { state } = await loadCheckpoint(store, checkpoint, { signal });
      // A fresh adapter changes nothing.
      const lora = state.adapter?.lora ?? FRESH;
      const mine = live?.weights === checkpoint.weights ? live.model : undefined;
      const tokens = probeTokens(state.config);
      let model = mine;
      let logprobs: number[];
      try {
        model ??= await modelAt({ run, parent: checkpoint, lora, seed: 0 }, state, signal);
        logprobs = await scoreProbe(model, state.config, signal);
      } catch (error) {
        // It may come back as another one.
        server = undefined;
        throw error;
      } finally {
        if (mine === undefined) await model?.unload(timeoutSignal(LEAVING));
      }
      await store.putIfAbsent(at, probes, { tokens, logprobs }, { signal });
    },

    /**
     * One learner step. What was committed counts and is read first; otherwise it is made from the parent's saved state, in a
     * model in which nothing else is, so that a gradient is added once however often the step is tried.
     */
    async trainStep(request: TrainRequest, signal: AbortSignal): Promise<TrainResult> {
      const start = Date.now();
      const { run, stage, step, stageStep } = request;
      const record = metricsKey(run, stage, stageStep);
      const spans = () => [{ part: 'learner' as const, start, end: Date.now() }];
      const committed = await store.find(record, stepRecords, { signal });
      if (committed !== null) {
        const { checkpoint, metrics, backend } = committed;
        return { checkpoint, metrics, backend, spans: spans() };
      }
      const { objective } = request;
      assertTinkerCan(request, await look(signal));
      const [{ state, files, manifest }, batch] = await Promise.all([
        loadCheckpoint(store, request.parent, { signal }),
        loadBatch(store, request.batch, { signal }),
      ]);
      assertBatch(objective as TinkerObjective, batch);
      const backend = `tinker ${client.url}`;
      try {
        const parent = { state, updates: manifest.updates };
        const { model, updates, metrics } = await learn(
          request,
          objective as TinkerObjective,
          parent,
          batch,
          signal,
        );
        const name = `${run}-${stage}-${stageStep}`;
        const saved: ServerState = {
          state: await model.save(name, signal),
          sampler: await model.saveForSampler(name, signal),
          steps: model.steps,
        };
        const lora = request.lora!;
        const adapter = await downloadAdapter(
          { url: client.url, key, path: saved.sampler },
          lora,
          state.config,
          signal,
        );
        for (const [name, { data }] of adapter.weights)
          if (!data.every(Number.isFinite))
            throw new GradusError(
              'learner',
              'diverged',
              `${name} of the adapter that ${client.url} trained is not finite: lower the rate`,
            );
        const checkpoint = await saveCheckpoint(
          store,
          {
            run,
            stage,
            step,
            parent: request.parent,
            backend,
            createdBy: CREATED_BY,
            // The moments are on the server, beside the weights that they are for.
            state: { ...state, adapter, firstMoments: new Map(), secondMoments: new Map(), updates },
            base: manifest.base ?? request.parent,
            files,
          },
          { signal },
        );
        const stood = await store.putIfAbsent(tinkerKey(run, checkpoint.weights), serverStates, saved, {
          signal,
        });
        const seconds = (Date.now() - start) / 1000;
        const report = { stage, step, metrics: { ...metrics, seconds }, checkpoint, backend };
        const { value: kept } = await store.putIfAbsent(record, stepRecords, report, { signal });
        const mine = stood.value.state === saved.state && kept.checkpoint.weights === checkpoint.weights;
        if (mine) live = { weights: checkpoint.weights, model };
        return { checkpoint: kept.checkpoint, metrics: kept.metrics, backend: kept.backend, spans: spans() };
      } catch (error) {
        await leave(timeoutSignal(LEAVING));
        // It may come back as another one.
        server = undefined;
        throw error;
      }
    },

    close: (): void => live?.model.close(),
  };
}

/** Log-probs of each token of the fixed sequence after the first. */
async function scoreProbe(model: TrainedModel, config: ModelConfig, signal: AbortSignal): Promise<number[]> {
  const tokens = Int32Array.from(probeTokens(config));
  const batch = { tokens, offsets: Int32Array.of(0, tokens.length) };
  return [...(await model.logprobs(batch, [0], signal)).subarray(1)];
}

/** What the API computes otherwise than the batch asks for. */
function assertBatch(objective: TinkerObjective, batch: TrainBatch): void {
  const { advantages, samplerLogprobs } = batch.streams;
  if (!advantages)
    throw new GradusError('learner', 'batch', 'it lacks the stream advantages, which this step reads');
  const corrects = 'importanceCap' in objective && objective.importanceCap > 0;
  if (corrects && !samplerLogprobs)
    throw new GradusError('learner', 'batch', 'it lacks the stream samplerLogprobs, which this step reads');
}
