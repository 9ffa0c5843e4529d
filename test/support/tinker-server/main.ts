// A server of ours that speaks Tinker's API over our own learner, for tests of what trains on such servers.
// Run: tsx test/support/tinker-server/main.ts --model FOLDER --state FOLDER [--port 0] [--grad-clip] [--seq-id] [--mean] [--protobuf] [--key KEY]
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { packTar } from 'modern-tar';
import { z } from 'zod';
import { messageOf } from '../../../core/errors.ts';
import { randomKey } from '../../../core/random.ts';
import { PROTOBUF } from '../../../activities/rollout/served/connection.ts';
import type { Json } from '../../../core/json/json.ts';
import { loadHfDirectory } from '../../../engine/hf-directory.ts';
import { createLocalLearner } from '../../../engine/learner/local-learner.ts';
import { writePeftModel } from '../../../engine/lora/peft-format.ts';
import { callOf, send, sendCut } from '../policy-server/http.ts';
import type { Answer } from '../policy-server/http.ts';

import { slopesOf } from './losses.ts';
import { inProtobuf, passOf } from './protobuf.ts';
import { Models } from './state.ts';
import type { ServedModel } from './state.ts';

const { values } = parseArgs({
  options: {
    model: { type: 'string' },
    state: { type: 'string' },
    port: { type: 'string', default: '0' },
    /** Adam's parameters have a clip. */
    'grad-clip': { type: 'boolean', default: false },
    /** Steps are known again by their place in the sequence. */
    'seq-id': { type: 'boolean', default: false },
    /** Losses are means over tokens and sequences, as SkyRL 0.3.0 in JAX has them. */
    mean: { type: 'boolean', default: false },
    /** As TuFT 0.2.2: passes are asked for in protobuf alone, steps count from 1, and one without a gradient is none. */
    protobuf: { type: 'boolean', default: false },
    /** Asked of everyone, in the header of Tinker's API. */
    key: { type: 'string' },
  },
});
const folder = z.string().parse(values.model);
const served = await loadHfDirectory(folder);
const models = new Models(
  await createLocalLearner(),
  z.string().parse(values.state),
  served.config,
  served.weights,
);
const sessions = new Set<string>();
const futures = new Map<string, { route: string; answer: Promise<Answer> }>();
/** The last place in the sequence of each model. */
const places = new Map<string, number>();
const bySequence = new Map<string, { id: string; body: string }>();
/** How often each is still to happen, by route. */
const faults: { route: string; kind: string; times: number; answer?: Answer }[] = [];
const asked: string[] = [];
let count = 0;
/** One after the other, as they came. */
let queue: Promise<unknown> = Promise.resolve();

const numbers = z.object({ data: z.array(z.number()) });
const passes = z.object({
  data: z.array(
    z.object({
      model_input: z.object({ chunks: z.array(z.object({ tokens: z.array(z.int()) })).length(1) }),
      loss_fn_inputs: z.object({
        target_tokens: numbers,
        weights: numbers.optional(),
        logprobs: numbers.optional(),
        advantages: numbers.optional(),
      }),
    }),
  ),
  loss_fn: z.enum(['cross_entropy', 'importance_sampling', 'ppo', 'cispo']),
  loss_fn_config: z
    .strictObject({ clip_low_threshold: z.number().optional(), clip_high_threshold: z.number().optional() })
    .optional(),
});
const adam = z.object({
  learning_rate: z.number().min(0),
  beta1: z.number().min(0).lt(1),
  beta2: z.number().min(0).lt(1),
  eps: z.number().positive(),
  grad_clip_norm: z.number().optional(),
});

async function pass(model: ServedModel, given: unknown, backward: boolean): Promise<Json> {
  const { data, loss_fn, loss_fn_config = {} } = passes.parse(given);
  const sequences = data.map(({ model_input, loss_fn_inputs }) => [
    model_input.chunks[0]!.tokens[0]!,
    ...loss_fn_inputs.target_tokens.data,
  ]);
  const logprobs = await models.logprobs(model, sequences);
  if (backward) {
    data.forEach(({ loss_fn_inputs: inputs }, i) => {
      const ones = logprobs[i]!.map(() => 1);
      const weights = inputs.weights?.data ?? ones;
      const zeros = ones.map(() => 0);
      const given = {
        weights,
        logprobs: inputs.logprobs?.data ?? zeros,
        advantages: inputs.advantages?.data ?? zeros,
      };
      const slopes = slopesOf(loss_fn, logprobs[i]!, given, loss_fn_config);
      const total = Math.max(
        1e-9,
        weights.reduce((sum, weight) => sum + weight, 0),
      );
      model.waiting.push({
        tokens: sequences[i]!,
        slopes: values.mean ? slopes.map((slope) => slope / total) : slopes,
      });
    });
  }
  return {
    loss_fn_output_type: 'scalar',
    metrics: {},
    loss_fn_outputs: logprobs.map((values) => ({
      logprobs: { data: values, dtype: 'float32', shape: [values.length] },
    })),
  };
}

/** Requests of which TuFT 0.2.2 takes these fields and no others. */
const begins = z.strictObject({
  tags: z.array(z.string()),
  user_metadata: z.record(z.string(), z.unknown()),
  sdk_version: z.string(),
  type: z.literal('create_session'),
});
const savesForSampler = z.strictObject({
  model_id: z.string(),
  path: z.string(),
  type: z.literal('save_weights_for_sampler'),
});

/** What is taken on, and answered by a future. */
const COMPUTED = [
  'create_model',
  'asample',
  'forward',
  'forward_backward',
  'optim_step',
  'save_weights',
  'save_weights_for_sampler',
  'load_weights',
  'unload_model',
];

const sampling = z.object({
  base_model: z.literal('tiny').optional(),
  model_path: z.string().optional(),
  prompt: z.object({ chunks: z.array(z.object({ tokens: z.array(z.int()) })).length(1) }),
  num_samples: z.literal(1),
  prompt_logprobs: z.boolean(),
  sampling_params: z.object({
    max_tokens: z.int().positive(),
    temperature: z.number(),
    top_p: z.literal(1),
    top_k: z.literal(-1),
    seed: z.int(),
    stop: z.array(z.int()).default([]),
  }),
});

/** From a saved sampler, whose model must still be there, or from the base. */
async function sample(body: unknown): Promise<Json> {
  const {
    model_path: saved,
    prompt,
    prompt_logprobs: scores,
    sampling_params: params,
  } = sampling.parse(body);
  const [, id, name] = /^tinker:\/\/([^/]+)\/([^/]+)$/.exec(saved ?? '') ?? [];
  const at = id === undefined ? '' : `${id}/sampler_weights/${name}`;
  if (id !== undefined) {
    const model = models.models.get(id);
    if (model === undefined) throw new Error(`Model ${id} not loaded`);
    await models.overwrite(model, at);
  }
  const { tokens } = prompt.chunks[0]!;
  const decoder = await models.decoder(at);
  const session = String(++count);
  const drawn = await decoder.sample({
    session,
    prefix: tokens,
    continuation: [],
    maxNewTokens: params.max_tokens,
    stopTokens: params.stop,
    sampling: { temperature: params.temperature, topK: 0, topP: 1 },
    key: randomKey('sample', params.seed),
  });
  decoder.release(session);
  const scored = scores ? await models.logprobs(await models.savedModel(at), [tokens]) : undefined;
  const sequence = { tokens: drawn.tokens, logprobs: drawn.samplerLogprobs, stop_reason: drawn.finish };
  return { sequences: [sequence], ...(scored && { prompt_logprobs: scored[0]! }) };
}

async function compute(route: string, id: string, body: Record<string, unknown>): Promise<Json> {
  if (route === 'create_model') {
    const { rank, seed } = z.object({ rank: z.int(), seed: z.int() }).parse(body['lora_config']);
    models.create(id, rank, seed);
    return { model_id: id };
  }
  if (route === 'asample') return sample(body);
  const model = models.models.get(id);
  if (model === undefined) throw new Error(`Model ${id} not loaded`);
  const name = z.string().default('').parse(body['path']);
  switch (route) {
    case 'forward':
      return pass(model, body['forward_input'], false);
    case 'forward_backward':
      return pass(model, body['forward_backward_input'], true);
    case 'optim_step': {
      // PyTorch's Adam passes over what has no gradient: no step is counted, and moments stay.
      if (values.protobuf && model.waiting.length === 0) return {};
      if (values.mean)
        for (const datum of model.waiting)
          datum.slopes = datum.slopes.map((slope) => slope / model.waiting.length);
      const { grad_clip_norm, ...params } = adam.parse(body['adam_params']);
      const norm = await models.step(model, { ...params, ...(values['grad-clip'] && { grad_clip_norm }) });
      return { metrics: { 'ours/grad_norm': norm } };
    }
    case 'save_weights':
      await models.save(model, `${id}/${name}`);
      return { path: `tinker://${id}/weights/${name}`, type: route };
    case 'save_weights_for_sampler':
      await models.save(model, `${id}/sampler_weights/${name}`);
      return { path: `tinker://${id}/${name}`, type: route };
    case 'load_weights':
      await models.load(model, name.replace('tinker://', '').replace('/weights/', '/'));
      return { type: route };
    case 'unload_model':
      models.models.delete(id);
      return { type: route };
    default:
      throw new Error(`no route ${route}`);
  }
}

/** A future; one that is known by its place in the sequence is the same. */
function begin(route: string, body: Record<string, unknown>): Answer {
  const created = route === 'create_model';
  if (created && !sessions.has(String(body['session_id']))) return said(404, 'Session not found');
  if (route === 'save_weights_for_sampler' && !savesForSampler.safeParse(body).success)
    return said(422, 'the request is wrong');
  const model = created ? `model_${process.pid}_${++count}` : String(body['model_id']);
  const place =
    values['seq-id'] && body['seq_id'] !== undefined
      ? `${model}/${JSON.stringify(body['seq_id'])}`
      : undefined;
  if (values.protobuf && ['forward', 'forward_backward', 'optim_step'].includes(route)) {
    const next = (places.get(model) ?? 0) + 1;
    if (body['seq_id'] !== next && (route !== 'optim_step' || body['seq_id'] !== undefined)) {
      const id = String(++count);
      const answer = Promise.resolve(said(409, `Failed to retrieve future: expected ${next}`));
      futures.set(id, { route, answer });
      return pending(id, model);
    }
    if (body['seq_id'] !== undefined) places.set(model, next);
  }
  const text = JSON.stringify(body);
  const known = place === undefined ? undefined : bySequence.get(place);
  if (known) return known.body === text ? pending(known.id, model) : said(409, 'seq_id was used');
  const id = String(++count);
  const wrong = fault(route, 'error-user')
    ? { error: 'the request is wrong', category: 'user' }
    : fault(route, 'error-server')
      ? { error: 'the engine failed', category: 'server' }
      : undefined;
  const noLogprobs = fault(route, 'no-logprobs');
  const nothingFinite = fault(route, 'not-finite');
  const other = faultOf(route, 'result')?.answer;
  const done = queue.then(async (): Promise<Answer> => {
    if (wrong) return { status: 200, body: wrong };
    if (other) return other;
    try {
      const result = await compute(route, model, body);
      if (nothingFinite) return { status: 200, body: withoutNumbers(result) };
      return { status: 200, body: noLogprobs ? { ...(result as object), loss_fn_outputs: [] } : result };
    } catch (error) {
      return said(400, messageOf(error));
    }
  });
  queue = done;
  futures.set(id, { route, answer: done });
  if (place !== undefined) bySequence.set(place, { id, body: text });
  return pending(id, model);
}

const pending = (id: string, model: string): Answer => ({
  status: 200,
  body: { future_id: id, request_id: id, status: 'pending', model_id: model },
});
const said = (status: number, detail: string): Answer => ({ status, body: { detail } });

const fault = (route: string, kind: string): boolean => faultOf(route, kind) !== undefined;

function faultOf(route: string, kind: string): (typeof faults)[number] | undefined {
  const at = faults.findIndex((one) => one.route === route && one.kind === kind);
  const found = faults[at];
  if (found && --found.times === 0) faults.splice(at, 1);
  return found;
}

/** As servers write what is not finite, for JSON has no word for it. */
const withoutNumbers = (value: Json): Json =>
  JSON.parse(JSON.stringify(value), (_, one: unknown) => (typeof one === 'number' ? null : one)) as Json;

/** What the server publishes of its requests. */
const object = (...names: string[]) => ({ properties: Object.fromEntries(names.map((name) => [name, {}])) });
const openapi = {
  paths: {
    '/api/v1/forward_backward': {
      post: { requestBody: { content: { [values.protobuf ? PROTOBUF : 'application/json']: {} } } },
    },
  },
  components: {
    schemas: {
      AdamParams: object('learning_rate', ...(values['grad-clip'] ? ['grad_clip_norm'] : [])),
      OptimStepRequest: object('model_id', ...(values['seq-id'] ? ['seq_id'] : [])),
      // What is read as bytes has no schema.
      ...(!values.protobuf && {
        ForwardBackwardRequest: object('model_id', ...(values['seq-id'] ? ['seq_id'] : [])),
        ForwardBackwardInput: { properties: { loss_fn: { enum: [...passes.shape.loss_fn.options] } } },
      }),
    },
  },
};

async function answer(route: string, body: Record<string, unknown>, accept: string): Promise<Answer> {
  switch (route) {
    case 'get_server_capabilities':
      return { status: 200, body: { supported_models: [{ model_name: 'tiny' }] } };
    case '/openapi.json':
      return { status: 200, body: openapi };
    case 'healthz':
      return { status: 200, body: { status: 'ok' } };
    case 'weights_info': {
      const at = String(body['tinker_path']).replace('tinker://', '').replace('/weights/', '/');
      const saved = await models.savedModel(at).catch(() => null);
      if (saved === null) return said(404, `Checkpoint not found: ${at}`);
      const { state } = saved;
      const { rank } = state.adapter!.lora;
      return { status: 200, body: { base_model: 'tiny', is_lora: true, lora_rank: rank } };
    }
    case 'create_session': {
      if (!begins.safeParse(body).success) return said(422, 'the request is wrong');
      const id = `session_${++count}`;
      sessions.add(id);
      return { status: 200, body: { session_id: id } };
    }
    case 'session_heartbeat':
      return sessions.has(String(body['session_id']))
        ? { status: 200, body: {} }
        : said(404, 'Session not found');
    case 'retrieve_future': {
      if (fault(route, 'still')) return said(408, 'Timeout waiting for result');
      if (fault(route, 'try-again'))
        return { status: 200, body: { type: 'try_again', queue_state: 'active' } };
      const future = futures.get(String(body['request_id']));
      if (future === undefined) return said(404, 'Future not found');
      const done = await future.answer;
      return values.protobuf && accept.includes(PROTOBUF) ? inProtobuf(future.route, done) : done;
    }
    default:
      return COMPUTED.includes(route) ? begin(route, body) : said(404, 'Not Found');
  }
}

async function archive(path: string, headers: IncomingHttpHeaders, response: ServerResponse): Promise<void> {
  if (headers['x-api-key'] !== undefined || headers.authorization !== undefined)
    return send(response, said(400, 'a key that is not for this place'));
  const [, model, name] = /training_runs\/([^/]+)\/checkpoints\/([^/]+)\/archive/.exec(path)!;
  const copy: ServedModel = { state: { ...[...models.models.values()][0]!.state }, waiting: [] };
  await models.load(copy, `${model}/sampler_weights/${name}`);
  const adapter = copy.state.adapter!;
  if (fault('archive', 'not-finite')) for (const { data } of adapter.weights.values()) data.fill(Number.NaN);
  const body = Buffer.from(writePeftModel(models.config, adapter));
  const { rank, alpha } = adapter.lora;
  const saidOfIt = { r: rank, lora_alpha: fault('archive', 'alpha') ? 2 * rank : alpha };
  const configuration = Buffer.from(JSON.stringify(saidOfIt));
  const tar = await packTar([
    {
      header: { name: './adapter_config.json', size: configuration.length, type: 'file' },
      body: configuration,
    },
    { header: { name: './adapter_model.safetensors', size: body.length, type: 'file' }, body },
  ]);
  const whole = gzipSync(fault('archive', 'bomb') ? Buffer.alloc(2 ** 28) : tar);
  const sent = fault('archive', 'cut') ? whole.subarray(0, Math.floor(whole.length / 2)) : whole;
  response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(sent);
}

const server = createServer((request, response) => {
  void (async () => {
    const { path, body, bytes, headers } = await callOf(request);
    if (path === '/faults') {
      faults.push(body as unknown as (typeof faults)[number]);
      return send(response, { status: 200, body: {} });
    }
    if (path === '/asked') return send(response, { status: 200, body: asked });
    if (path.startsWith('/archives/')) return archive(path, headers, response);
    if (bytes !== undefined && !values.protobuf) return send(response, said(422, 'expected JSON'));
    if (values.key !== undefined && headers['x-api-key'] !== values.key)
      return send(response, said(401, 'Invalid API key'));
    if (path.startsWith('/download/')) {
      const location = `http://localhost:${request.socket.localPort}/archives${path}`;
      return send(response, { status: 302, headers: { location } });
    }
    const named = path.endsWith('/archive') ? 'archive' : path.replace('/api/v1/', '');
    const passing = named === 'forward_backward' && values.protobuf;
    if (passing && bytes === undefined) return send(response, said(415, 'expected protobuf'));
    const { route, given } = bytes
      ? passOf(bytes)
      : { route: named, given: (body ?? {}) as Record<string, unknown> };
    asked.push(route);
    const other = faultOf(route, 'answer')?.answer;
    if (other) return send(response, other);
    // First to another route, as SkyRL 0.3.0 does, and then to another origin, as a store is one.
    if (route === 'archive')
      return send(response, { status: 302, headers: { location: `/download${path}` } });
    if (fault(route, 'unavailable')) return send(response, said(503, 'Service Unavailable'));
    const answered = await answer(route, given, headers.accept ?? '');
    // The server has taken it on, and nobody hears of it.
    return fault(route, 'cut') ? sendCut(response, answered) : send(response, answered);
  })().catch((error: unknown) => send(response, said(500, messageOf(error))));
});
server.listen(Number(values.port), '127.0.0.1');
await once(server, 'listening');
process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
process.once('SIGTERM', () => process.exit(0));
