import { z } from 'zod';
import { messageOf } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import { checksumsOf, digestOf, overallChecksum } from './checksums.ts';
import { likeliest } from './distribution.ts';
import type { Faults } from './faults.ts';
import { bodyOf, ok, Refusal } from './http.ts';
import type { Answer, Call, Dialect } from './http.ts';
import type { Generated, PolicyEngine } from './policy-engine.ts';
import { spansOf } from './spans.ts';

// Shapes: SGLang 0.5.23, sglang/srt/{entrypoints/http_server,managers/io_struct,utils/weight_versions}.py.

const SAMPLING = z.looseObject({
  max_new_tokens: z.int().min(0).nullish(),
  temperature: z.number().min(0).nullish(),
  top_k: z.int().min(-1).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  stop_token_ids: z.array(z.int()).nullish(),
  sampling_seed: z.number().nullish(),
  ignore_eos: z.boolean().nullish(),
});
const GENERATE = z.looseObject({
  rid: z.string().nullish(),
  input_ids: z.array(z.int()).min(1),
  sampling_params: SAMPLING.default({}),
  return_logprob: z.boolean().nullish(),
  logprob_start_len: z.int().nullish(),
  top_logprobs_num: z.int().min(0).nullish(),
  lora_path: z.string().nullish(),
  extra_key: z.string().nullish(),
  cache_salt: z.string().nullish(),
  stream: z.literal(false).nullish(),
});
const UPDATE = z.looseObject({
  model_path: z.string(),
  weight_version: z.string().nullish(),
  abort_all_requests: z.boolean().default(false),
  flush_cache: z.boolean().default(true),
  keep_pause: z.boolean().default(false),
});
const PAUSE = z.looseObject({ mode: z.enum(['abort', 'retract', 'in_place']).default('abort') });
const LOAD_LORA = z.looseObject({ lora_name: z.string(), lora_path: z.string() });
const UNLOAD_LORA = z.looseObject({ lora_name: z.string() });

export interface SglangOptions {
  servedName: string;
  version: string;
}

const error = (status: number, message: string): Answer => ({
  status,
  body: status === 400 ? { error: { message } } : { detail: message },
});

/** The routes of SGLang's own server. `retract` and `in_place` are the same here: keys and values are made again. */
export function sglangDialect(engine: PolicyEngine, faults: Faults, options: SglangOptions): Dialect {
  let requests = 0;

  async function generate(call: Call): Promise<Answer> {
    const asked = bodyOf(GENERATE, call, error);
    const { input_ids: prompt, sampling_params: sampling } = asked;
    const { vocabSize, maxPositions } = engine.base.config;
    const stranger = prompt.find((token) => token < 0 || token >= vocabSize);
    if (stranger !== undefined) {
      throw new Refusal(
        error(400, `The input_ids contain a token id ${stranger}; valid range is [0, ${vocabSize}).`),
      );
    }
    if (prompt.length >= maxPositions) {
      throw new Refusal(
        error(
          400,
          `The input (${prompt.length} tokens) is longer than the model's context length (${maxPositions} tokens).`,
        ),
      );
    }
    const adapter = asked.lora_path ?? undefined;
    if (adapter !== undefined && !engine.adapters.has(adapter)) {
      const loaded = [...engine.adapters.keys()].join(', ');
      throw new Refusal(
        error(
          400,
          `The following requested LoRA adapters are not loaded: ${adapter}\nLoaded adapters: ${loaded}.`,
        ),
      );
    }
    const eos = sampling.ignore_eos === true ? [] : engine.base.eos;
    const logprobs = asked.return_logprob === true;
    const from = logprobs ? (asked.logprob_start_len ?? -1) : -1;
    const salt = [asked.extra_key, asked.cache_salt].filter((one) => one != null).join('');
    const started = performance.now();
    const generated = await engine.generate({
      prompt,
      maxTokens: Math.min(sampling.max_new_tokens ?? 128, maxPositions - prompt.length),
      temperature: sampling.temperature ?? 1,
      topK: Math.max(0, sampling.top_k ?? 0),
      topP: sampling.top_p ?? 1,
      minP: sampling.min_p ?? 0,
      seed: sampling.sampling_seed ?? undefined,
      stopTokens: [...(sampling.stop_token_ids ?? []), ...eos],
      logprobs,
      scorePrompt: from >= 0 && from < prompt.length,
      ...(adapter !== undefined && { adapter }),
      ...(salt !== '' && { salt }),
    });
    const tokens = generated.steps.map(({ token }) => token);
    const spans = spansOf(generated.steps, foreign());
    return ok({
      text: engine.base.tokenizer.decode(tokens),
      output_ids: tokens,
      meta_info: {
        id: asked.rid ?? `request-${++requests}`,
        finish_reason: ending(generated),
        prompt_tokens: prompt.length,
        completion_tokens: tokens.length,
        cached_tokens: 0,
        weight_version: spans.at(-1)?.['version'] ?? engine.version,
        weight_versions: spans,
        ...(logprobs &&
          !faults.take('no-logprobs') &&
          logprobsOf(generated, prompt, from, asked.top_logprobs_num ?? 0)),
        e2e_latency: (performance.now() - started) / 1000,
      },
    });
  }

  const foreign = (): string | undefined => {
    const fault = faults.take('foreign-version');
    return fault && (fault.version ?? 'somebody-elses');
  };

  async function update(call: Call): Promise<Answer> {
    const asked = bodyOf(UPDATE, call, error);
    const answered = (status: number, success: boolean, message: string): Answer => ({
      status,
      body: { success, message, num_paused_requests: 0 },
    });
    if (asked.abort_all_requests) await engine.abortAll();
    const was = engine.paused;
    if (was === 'no') {
      // The writer's lock: what runs is finished, what comes waits.
      engine.pause('new');
      await engine.drained();
    }
    try {
      await engine.reload(asked.model_path);
      if (asked.flush_cache && !(await engine.resetCache()))
        return answered(400, false, 'Cache flush failed after updating weights');
    } catch (cause) {
      return answered(
        400,
        false,
        `Failed to update weights: ${messageOf(cause)}.\nRolling back to original weights.`,
      );
    } finally {
      if (was === 'no' && !asked.keep_pause) engine.resume();
    }
    if (asked.weight_version == null) return answered(200, true, 'Succeeded to update model weights.');
    engine.version = asked.weight_version;
    return answered(
      200,
      true,
      `Succeeded to update model weights. Weight version updated to ${engine.version}.`,
    );
  }

  async function pause(call: Call): Promise<Answer> {
    const { mode } = bodyOf(PAUSE, call, error);
    engine.pause(mode === 'abort' ? 'new' : 'all');
    if (mode === 'abort') await engine.abortAll();
    return ok({ message: 'Generation paused successfully.', status: 'ok' });
  }

  async function flush(): Promise<Answer> {
    if (await engine.resetCache()) {
      return ok(
        'Cache flushed.\nPlease check backend logs for more details. (When there are running or waiting requests, the operation will not be performed.)\n',
      );
    }
    return { status: 400, body: 'Flush cache failed.\n' };
  }

  const adapters = (): Json =>
    Object.fromEntries([...engine.adapters].map(([name, { path }]) => [name, path]));
  const adapterAnswer = (failure?: string): Answer => ({
    status: failure === undefined ? 200 : 400,
    body: { success: failure === undefined, error_message: failure ?? null, loaded_adapters: adapters() },
  });

  async function loadAdapter(call: Call): Promise<Answer> {
    const { lora_name: name, lora_path: folder } = bodyOf(LOAD_LORA, call, error);
    if (engine.adapters.has(name))
      return adapterAnswer(`Failed to load LoRA adapter ${name} because it is already loaded`);
    try {
      await engine.loadAdapter(name, folder);
    } catch (cause) {
      return adapterAnswer(messageOf(cause));
    }
    return adapterAnswer();
  }

  function unloadAdapter(call: Call): Answer {
    const { lora_name: name } = bodyOf(UNLOAD_LORA, call, error);
    if (!engine.adapters.has(name)) return adapterAnswer(`LoRA with name ${name} does not exist.`);
    engine.unloadAdapter(name);
    return adapterAnswer();
  }

  function check(): Answer {
    const checksums = checksumsOf(engine.base.config, engine.base.weights);
    const overall = overallChecksum(checksums);
    const where = {
      role: 'target',
      tp_rank: 0,
      tp_size: 1,
      dp_rank: 0,
      dp_size: 1,
      pp_rank: 0,
      pp_size: 1,
      rank: 0,
      size: 1,
    };
    return ok({
      success: true,
      message: 'Success',
      ranks: [{ checksums, per_gpu_checksum: overall, parallelism_info: where }],
      per_engine_checksum: digestOf(overall),
    });
  }

  const info = (): Answer =>
    ok({
      model_path: engine.base.folder,
      served_model_name: options.servedName,
      tokenizer_path: engine.base.folder,
      is_generation: true,
      weight_version: engine.version,
      load_format: 'auto',
      model_type: 'llama',
    });
  const serverInfo = (): Answer =>
    ok({
      model_path: engine.base.folder,
      tokenizer_path: engine.base.folder,
      context_length: engine.base.config.maxPositions,
      enable_lora: true,
      version: options.version,
      internal_states: [{}],
    });

  return {
    tokenPaths: ['/generate'],
    error,
    queueFull: { status: 503, body: { detail: 'The request queue is full.' } },
    routes: {
      'GET /health': () => ({ status: 200 }),
      'GET /health_generate': () => ({ status: 200 }),
      'GET /v1/models': () => ({
        status: 200,
        body: {
          object: 'list',
          data: [options.servedName, ...engine.adapters.keys()].map((id) => ({ id, object: 'model' })),
        },
      }),
      'GET /model_info': info,
      'GET /get_model_info': info,
      'GET /server_info': serverInfo,
      'GET /get_server_info': serverInfo,
      'POST /generate': generate,
      'POST /update_weights_from_disk': update,
      'POST /pause_generation': pause,
      'POST /continue_generation': () => {
        engine.resume();
        return ok({ message: 'Generation continued successfully.', status: 'ok' });
      },
      'GET /flush_cache': flush,
      'POST /flush_cache': flush,
      'POST /load_lora_adapter': loadAdapter,
      'POST /unload_lora_adapter': unloadAdapter,
      'GET /weights_checker': check,
      'POST /weights_checker': check,
    },
  };
}

function ending({ steps, finish }: Generated): { [key: string]: Json } {
  if (finish === 'stop') return { type: 'stop', matched: steps.at(-1)!.token };
  if (finish === 'length') return { type: 'length', length: steps.length };
  return { type: 'abort', message: 'Aborted', status_code: null, err_type: null };
}

/** Each one: log-probability, id, text (null unless it was asked for). */
function logprobsOf(
  { steps, prompt: scored = [] }: Generated,
  prompt: readonly number[],
  from: number,
  top: number,
): { [key: string]: Json } {
  const input =
    from < 0
      ? []
      : prompt.slice(from).map((token, i): Json => [scored[from + i]?.[token] ?? null, token, null]);
  return {
    input_token_logprobs: input,
    output_token_logprobs: steps.map(({ token, distribution: all }): Json => [all![token]!, token, null]),
    output_token_logprobs_length: steps.length,
    ...(top > 0 && {
      output_top_logprobs: steps.map(({ distribution: all }): Json =>
        likeliest(all!, top).map((token): Json => [all![token]!, token, null]),
      ),
    }),
  };
}
