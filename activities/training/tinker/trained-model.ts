import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { GradusError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import type { LoraSpec } from '../../../core/schema/lora.ts';
import type { OptimizerSettings, TrainBatch } from '../../../engine/learner/contract.ts';
import { refuseNonFinite } from '../../../engine/learner/step/refuse-non-finite.ts';
import { lacks } from './capabilities.ts';
import type { TinkerServer } from './capabilities.ts';
import { hasForgot, passes, wasPutOff } from './client.ts';
import type { TinkerClient } from './client.ts';
import { datumsOf } from './datums.ts';
import type { Reduction, TinkerUpdate } from './datums.ts';
import { eitherWire, passRequest, readPass } from './protobuf.ts';
import type { TinkerPass } from './protobuf.ts';
import { timeoutSignal } from '../../../core/timeout-signal.ts';

/** Sequences of one request. */
const SEQUENCES = 64;
/**
 * Tokens of one request. Tinker's own client keeps a body within 5,000,000 bytes (`fwdbwd_max_chunk_bytes_count` of
 * tinker 0.38.0); in JSON a token is two integers and at most two float32, 70 bytes.
 */
export const TOKENS = 65_536;
/** The SDK says so every ten seconds, and servers forget models that are silent for minutes. */
const BEAT = 10_000;
/** To say that a model is left, milliseconds. */
export const LEAVING = 5000;

const anything = z.unknown();
const session = z.object({ session_id: z.string() });
const saved = z.object({ path: z.string().startsWith('tinker://') });
// A proxy that answers in its own words has loaded nothing.
const loaded = z.object({ type: z.literal('load_weights').nullish() });
/** JSON has no word for what is not finite, and servers write null. */
const written = z
  .number()
  .nullable()
  .transform((value) => value ?? Number.NaN);
const passed = eitherWire(
  z.object({ loss_fn_outputs: z.array(z.object({ logprobs: z.object({ data: z.array(written) }) })) }),
  readPass,
);
const stepped = z.object({ metrics: z.record(z.string(), z.unknown()).nullish() });

/** Of a computation: `seq_id` is there where it changes something that servers count. */
type Place = { model_id: string; seq_id?: number };

type TokenBatch = Pick<TrainBatch, 'tokens' | 'offsets'>;

/**
 * A model that a server trains, with one adapter. It belongs to one attempt and those that go on from it: another attempt opens
 * its own, so that nothing that an earlier one has asked for, and that the server does later, is ever a part of it.
 */
export class TrainedModel {
  /** Adam's steps that the server has made of it, whatever they moved. */
  steps: number;
  private readonly client: TinkerClient;
  private readonly server: Pick<TinkerServer, 'baseModel' | 'knowsSequence' | 'wire'>;
  private readonly id: string;
  private readonly beat: NodeJS.Timeout;
  private readonly most: number;
  private sequence = 0;
  private reduction: Reduction = 'sum';

  private constructor(
    client: TinkerClient,
    server: Pick<TinkerServer, 'baseModel' | 'knowsSequence' | 'wire'>,
    id: string,
    sessionId: string,
    { steps, most }: { steps: number; most: number },
  ) {
    this.client = client;
    this.server = server;
    this.id = id;
    this.steps = steps;
    this.most = most;
    // A session that is gone is found out by the next computation.
    this.beat = setInterval(() => {
      client
        .ask('/api/v1/session_heartbeat', { session_id: sessionId }, anything, timeoutSignal(BEAT))
        .catch(() => undefined);
    }, BEAT).unref();
  }

  /**
   * A model that stands where `from` does, a path of `save`, or with a fresh adapter. Gradients that others have left in its
   * place on the server are thrown away: SkyRL 0.3.0 keeps them when it loads weights, and when it gives the place to another.
   * Throws GradusError('learner', 'state-lost') where the server no longer has `from`.
   */
  static async open(
    client: TinkerClient,
    server: Pick<TinkerServer, 'baseModel' | 'knowsSequence' | 'wire'>,
    {
      lora,
      seed,
      from,
      trains = true,
      mostTokens = TOKENS,
    }: {
      lora: Pick<LoraSpec, 'rank'>;
      seed: number;
      from?: { state: string; steps: number } | undefined;
      /** Nobody asks it for gradients: what the server makes of losses need not be known. */
      trains?: boolean;
      /** Of a request; servers take no more than `TOKENS`. */
      mostTokens?: number | undefined;
    },
    signal: AbortSignal,
  ): Promise<TrainedModel> {
    const begun = { tags: ['gradus'], user_metadata: {}, sdk_version: 'gradus', type: 'create_session' };
    const { session_id: sessionId } = await client.ask('/api/v1/create_session', begun, session, signal);
    const created = await client.compute(
      '/api/v1/create_model',
      {
        session_id: sessionId,
        model_seq_id: 0,
        base_model: server.baseModel,
        lora_config: { rank: lora.rank, seed, train_attn: true, train_mlp: true, train_unembed: false },
      },
      z.object({ model_id: z.string().optional() }),
      signal,
      wasPutOff,
    );
    const id = created.model ?? created.result.model_id;
    if (id === undefined)
      throw new GradusError('learner', 'server-answer', `${client.url} does not name a model that it made`, {
        retryable: true,
      });
    const most = Math.min(mostTokens, TOKENS);
    const model = new TrainedModel(client, server, id, sessionId, { steps: from?.steps ?? 0, most });
    try {
      const start = from?.state ?? (await model.save('start', signal));
      if (trains) model.reduction = await model.findReduction(signal);
      await model.load(start, signal);
      model.steps = from?.steps ?? 0;
      return model;
    } catch (error) {
      await model.unload(timeoutSignal(LEAVING));
      throw error;
    }
  }

  private async load(path: string, signal: AbortSignal): Promise<void> {
    try {
      await this.compute('load_weights', { path, optimizer: true }, loaded, signal);
    } catch (error) {
      if (!hasForgot(error)) throw error;
      // Either the model is gone or the state. A model that still steps is there.
      await this.optimStep(STILL, signal);
      throw new GradusError(
        'learner',
        'state-lost',
        `${this.client.url} no longer has the state ${path} (${error.message}): put its saved checkpoints back, or export the last checkpoint (gradus export), start the server with that model and begin a run from it`,
        { cause: error },
      );
    }
  }

  get reduces(): Reduction {
    return this.reduction;
  }

  /** [total] log-probs of the tokens of these sequences; 0 elsewhere. Nothing is changed. */
  async logprobs(batch: TokenBatch, sequences: number[], signal: AbortSignal): Promise<Float32Array> {
    const weights = new Float32Array(batch.tokens.length).fill(1);
    return this.pass(false, { loss: 'cross_entropy', weights, sequences }, batch, signal);
  }

  /** Adds up the gradient of an update, zeros where nothing moves, and gives the log-probs that it is of. */
  async addGradient(update: TinkerUpdate, batch: TokenBatch, signal: AbortSignal): Promise<Float32Array> {
    if (update.sequences.length === 0) await this.addZeros(signal);
    return this.pass(true, update, batch, signal);
  }

  /**
   * Moves the weights by the gradient, as Gradus' Adam does at its `t`-th update: its bias is corrected by t where the
   * server's is by `steps`, and ε is added to √v before that is corrected. Gives the norm of the gradient, if it is said.
   */
  async move(optimizer: OptimizerSettings, t: number, signal: AbortSignal): Promise<number | null> {
    const { learningRate, warmupUpdates, beta1, beta2, epsilon, maxGradientNorm } = optimizer;
    const [first, second] = [1 - beta1 ** (this.steps + 1), Math.sqrt(1 - beta2 ** (this.steps + 1))];
    const rate = learningRate * (warmupUpdates > 0 ? Math.min(1, t / warmupUpdates) : 1);
    const correction = Math.sqrt(1 - beta2 ** t) / (1 - beta1 ** t);
    return this.optimStep(
      {
        learning_rate: (rate * correction * first) / second,
        beta1,
        beta2,
        eps: epsilon / second,
        weight_decay: 0,
        ...(maxGradientNorm > 0 && { grad_clip_norm: maxGradientNorm }),
      },
      signal,
    );
  }

  /** A gradient of zeros. Without any, PyTorch's Adam counts no step and keeps its moments. */
  private async addZeros(signal: AbortSignal): Promise<void> {
    const none = { loss: 'cross_entropy' as const, weights: new Float32Array(2), sequences: [0] };
    await this.pass(true, none, { tokens: Int32Array.of(1, 1), offsets: Int32Array.of(0, 2) }, signal);
  }

  /** Empties Adam's moments, of which no API says how: a step of zeros at β = 0 and rate 0. */
  async forgetMoments(signal: AbortSignal): Promise<void> {
    await this.addZeros(signal);
    await this.optimStep({ ...STILL, beta1: 0, beta2: 0 }, signal);
  }

  /** Saves weights and moments; the path by which they are loaded. */
  async save(name: string, signal: AbortSignal): Promise<string> {
    return (await this.compute('save_weights', { path: nameOf(name) }, saved, signal)).path;
  }

  /** Saves the weights as they are now for samplers, never to change. */
  async saveForSampler(name: string, signal: AbortSignal): Promise<string> {
    const body = { path: nameOf(name), type: 'save_weights_for_sampler' };
    return (await this.compute('save_weights_for_sampler', body, saved, signal)).path;
  }

  close(): void {
    clearInterval(this.beat);
  }

  /** Says to the server that nobody goes on from this one; one that cannot be told forgets it by itself. */
  async unload(signal: AbortSignal): Promise<void> {
    this.close();
    await this.compute('unload_model', { type: 'unload_model' }, anything, signal).catch(() => undefined);
  }

  /**
   * What the server does with weights and sequences, found by the norm of known gradients: twice the weight, or the sequence
   * twice, doubles it where losses are summed. Without a norm it is what the API documents. Adam's steps that this takes move
   * nothing, and are undone by what is loaded next.
   */
  private async findReduction(signal: AbortSignal): Promise<Reduction> {
    const tokens = Int32Array.of(1, 2, 3, 4, 1, 2, 3, 4);
    const batch = { tokens, offsets: Int32Array.of(0, 4, 8) };
    const norm = async (weight: number, sequences: number[]): Promise<number | null> => {
      const weights = new Float32Array(tokens.length).fill(weight);
      await this.pass(true, { loss: 'cross_entropy', weights, sequences }, batch, signal);
      return this.optimStep(STILL, signal);
    };
    await this.optimStep(STILL, signal);
    const once = await norm(1, [0]);
    if (once === null || once === 0) return 'sum';
    const ratios = [(await norm(2, [0]))! / once, (await norm(1, [0, 1]))! / once];
    const are = (expected: number) => ratios.every((ratio) => Math.abs(ratio - expected) < 0.01);
    if (are(2)) return 'sum';
    if (are(1)) return 'mean';
    throw lacks(
      `a known mean of losses: the gradient of twice the weight is ${ratios[0]!.toPrecision(3)} times, of two equal sequences ${ratios[1]!.toPrecision(3)} times that of one`,
      'train on another server',
    );
  }

  private async optimStep(adam: Record<string, number>, signal: AbortSignal): Promise<number | null> {
    const { metrics } = await this.compute('optim_step', { adam_params: adam }, stepped, signal, true);
    this.steps++;
    const [, norm] =
      Object.entries(metrics ?? {}).find(([name]) => /(^|[/.:])grad(ient)?_norm/.test(name)) ?? [];
    return typeof norm === 'number' ? norm : null;
  }

  private async pass(
    backward: boolean,
    update: Pick<TinkerUpdate, 'loss' | 'clip' | 'weights' | 'to' | 'sequences'>,
    batch: TokenBatch,
    signal: AbortSignal,
  ): Promise<Float32Array> {
    const logprobs = new Float32Array(batch.tokens.length);
    const data = datumsOf(update, batch, this.reduction);
    for (const { from, to } of piecesOf(update.sequences, batch.offsets, this.most)) {
      const input = {
        data: data.slice(from, to),
        loss_fn: update.loss,
        ...(update.clip && { loss_fn_config: { ...update.clip } }),
      };
      const { loss_fn_outputs: outputs } = await this.computePass(backward, input, signal);
      update.sequences.slice(from, to).forEach((sequence, i) => {
        const [start, end] = [batch.offsets[sequence]!, batch.offsets[sequence + 1]!];
        const values = outputs[i]?.logprobs.data ?? [];
        if (values.length !== end - start - 1)
          throw new GradusError(
            'learner',
            'server-answer',
            `${this.client.url}: a pass gave ${values.length} log-probs of ${end - start - 1} targets`,
            { retryable: true },
          );
        logprobs.set(values, start + 1);
      });
    }
    refuseNonFinite(logprobs, `the model on ${this.client.url}`);
    return logprobs;
  }

  /** Without gradients a pass has a route of its own in JSON; in protobuf it has a flag, and a place in the sequence. */
  private async computePass(backward: boolean, input: TinkerPass, signal: AbortSignal) {
    if (this.server.wire === 'json') {
      const route = backward ? 'forward_backward' : 'forward';
      return this.compute(route, { [`${route}_input`]: { ...input } }, passed, signal, backward);
    }
    const encode = (place: Place) => passRequest({ ...place, forward_only: !backward }, input);
    try {
      return await this.compute('forward_backward', {}, passed, signal, true, encode);
    } catch (error) {
      if (!(error instanceof GradusError) || error.type !== 'server-refused') throw error;
      const why = 'It was asked in protobuf: its /openapi.json does not say that this route takes JSON';
      throw new GradusError('learner', 'server-refused', `${error.message}. ${why}`, { cause: error });
    }
  }

  /**
   * Of a computation that changes something and has no name of its own the server may know the place in the sequence. `encode`
   * makes what is sent in the place of JSON.
   */
  private async compute<T>(
    route: string,
    body: { [key: string]: Json },
    schema: z.ZodType<T>,
    signal: AbortSignal,
    numbered = false,
    encode?: (place: Place) => Uint8Array,
  ): Promise<T> {
    const { knowsSequence, wire } = this.server;
    const known = numbered && knowsSequence;
    const counted = known || (numbered && wire === 'protobuf');
    const place = { model_id: this.id, ...(counted && { seq_id: ++this.sequence }) };
    const again = known || route === 'forward' ? passes : wasPutOff;
    const asked = { ...place, ...body };
    const path = `/api/v1/${route}`;
    return (await this.client.compute(path, asked, schema, signal, again, encode?.(place))).result;
  }
}

/**
 * Where sequences are cut into requests, `to` excluded: `SEQUENCES` and `most` tokens at most in each, and a longer sequence
 * alone. The server adds up what they come to, so gradients are of the whole.
 */
export function piecesOf(
  sequences: readonly number[],
  offsets: ArrayLike<number>,
  most: number,
): { from: number; to: number }[] {
  const pieces: { from: number; to: number }[] = [];
  let tokens = 0;
  for (const [i, sequence] of sequences.entries()) {
    const length = offsets[sequence + 1]! - offsets[sequence]!;
    const last = pieces.at(-1);
    if (last === undefined || i - last.from === SEQUENCES || tokens + length > most) {
      pieces.push({ from: i, to: i + 1 });
      tokens = length;
    } else {
      last.to = i + 1;
      tokens += length;
    }
  }
  return pieces;
}

/** Adam moves nothing. */
const STILL = { learning_rate: 0, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0 };

/** Another attempt saves under another name: servers refuse one that is taken. */
const nameOf = (name: string): string =>
  `${name.replaceAll(/[^a-zA-Z0-9_-]/g, '-').slice(0, 200)}-${randomUUID().slice(0, 8)}`;
