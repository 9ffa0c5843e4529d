import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { messageOf } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import { checksumsOf } from './checksums.ts';
import { likeliest, rankOf } from './distribution.ts';
import type { Distribution } from './distribution.ts';
import type { Faults } from './faults.ts';
import { bodyOf, EngineDead, ok, Refusal } from './http.ts';
import type { Answer, Call, Dialect } from './http.ts';
import type { Generated, Generation, PolicyEngine } from './policy-engine.ts';
import { spansOf } from './spans.ts';

// Shapes: vLLM 0.32, vllm/entrypoints/{openai,scale_out,rl,serve}.

const SAMPLING = {
  max_tokens: z.int().min(0).nullish(),
  temperature: z.number().min(0).nullish(),
  top_k: z.int().min(-1).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  seed: z.number().nullish(),
  stop_token_ids: z.array(z.int()).nullish(),
  ignore_eos: z.boolean().nullish(),
  logprobs: z.int().min(-1).nullish(),
  prompt_logprobs: z.int().min(-1).nullish(),
};
const SALT = z.string().min(1).max(1024).nullish();
const COMPLETION = z.looseObject({
  ...SAMPLING,
  model: z.string().nullish(),
  prompt: z.union([z.array(z.int().min(0)).min(1), z.string()]),
  n: z.literal(1).nullish(),
  stream: z.literal(false).nullish(),
  cache_salt: SALT,
  return_token_ids: z.boolean().nullish(),
  return_tokens_as_token_ids: z.boolean().nullish(),
  return_weight_versions: z.boolean().nullish(),
});
const GENERATE = z.looseObject({
  model: z.string().nullish(),
  request_id: z.string().nullish(),
  token_ids: z.array(z.int().min(0)).min(1),
  sampling_params: z.looseObject(SAMPLING),
  cache_salt: SALT,
  return_token_ids: z.boolean().nullish(),
  stream: z.literal(false).nullish(),
});
const LOAD_LORA = z.looseObject({
  lora_name: z.string(),
  lora_path: z.string(),
  load_inplace: z.boolean().default(false),
});
const UNLOAD_LORA = z.looseObject({ lora_name: z.string() });
const RPC = z.looseObject({
  method: z.string(),
  kwargs: z.looseObject({ weights_path: z.string().optional() }).default({}),
});
const NEW_VERSION = z.object({ new_version: z.string() });
const CHECK = z.object({
  action: z.enum(['checksum', 'reset', 'compare']),
  baseline: z.record(z.string(), z.string()).nullish(),
});
const PAUSE_MODE = z.enum(['abort', 'wait', 'keep']);
const TOKENIZE = z.looseObject({ prompt: z.string(), model: z.string().nullish() });

export interface VllmOptions {
  /** Whether `/inference/v1/generate` is there. */
  scaleOut: boolean;
  /** What the base is called in requests. */
  servedName: string;
  /** Whether `/v1/completions` tells versions where it is asked to: from 0.33 on. */
  weightVersions: boolean;
  version: string;
}

const TYPES: Record<number, string> = {
  400: 'BadRequestError',
  404: 'NotFoundError',
  500: 'InternalServerError',
  503: 'ServiceUnavailableError',
};

const error = (status: number, message: string, param: string | null = null): Answer => ({
  status,
  body: { error: { message, type: TYPES[status] ?? 'InternalServerError', param, code: status } },
});
const invalidInput = (message: string): Refusal =>
  new Refusal({
    status: 400,
    body: { error: { message, type: 'InvalidUserInput', param: null, code: 400 } },
  });

/** The routes of vLLM's server in development mode, with `--enable-lora` and runtime updates of adapters. */
export function vllmDialect(engine: PolicyEngine, faults: Faults, options: VllmOptions): Dialect {
  const { servedName } = options;
  const now = (): number => Math.floor(Date.now() / 1000);
  let dead = false;

  function adapterOf(model: string | null | undefined): string | undefined {
    if (model == null || model === '' || model === servedName) return undefined;
    if (engine.adapters.has(model)) return model;
    throw new Refusal(
      error(404, `The model \`${model}\` does not exist. Valid aliases: ${servedName}.`, 'model'),
    );
  }

  function generationOf(
    prompt: readonly number[],
    sampling: z.infer<z.ZodObject<typeof SAMPLING>>,
    more: { model: string | null | undefined; cache_salt: string | null | undefined; maxTokens: number },
  ): Generation {
    const { vocabSize, maxPositions } = engine.base.config;
    const adapter = adapterOf(more.model);
    const stranger = prompt.find((token) => token >= vocabSize);
    if (stranger !== undefined) throw new Refusal(error(400, `Token id ${stranger} is out of vocabulary`));
    if (prompt.length + more.maxTokens > maxPositions) {
      const what = `This model's maximum context length is ${maxPositions} tokens. However, you requested ${more.maxTokens} output tokens and your prompt contains ${prompt.length} input tokens.`;
      throw new Refusal(error(400, what, 'input_tokens'));
    }
    const eos = sampling.ignore_eos === true ? [] : engine.base.eos;
    return {
      prompt,
      maxTokens: more.maxTokens,
      temperature: sampling.temperature ?? 1,
      topK: Math.max(0, sampling.top_k ?? 0),
      topP: sampling.top_p ?? 1,
      minP: sampling.min_p ?? 0,
      seed: sampling.seed ?? undefined,
      stopTokens: [...(sampling.stop_token_ids ?? []), ...eos],
      logprobs: sampling.logprobs != null,
      scorePrompt: sampling.prompt_logprobs != null,
      ...(adapter !== undefined && { adapter }),
      ...(more.cache_salt != null && { salt: more.cache_salt }),
    };
  }

  async function complete(call: Call): Promise<Answer> {
    const asked = bodyOf(COMPLETION, call, error);
    const { tokenizer } = engine.base;
    const prompt = typeof asked.prompt === 'string' ? tokenizer.encode(asked.prompt) : asked.prompt;
    const maxTokens = asked.max_tokens ?? 16;
    const generated = await engine.generate(
      generationOf(prompt, asked, { ...asked, model: asked.model, cache_salt: asked.cache_salt, maxTokens }),
    );
    const tokens = generated.steps.map(({ token }) => token);
    const named = (id: number): string =>
      asked.return_tokens_as_token_ids === true ? `token_id:${id}` : tokenizer.decode([id]);
    return ok({
      id: `cmpl-${randomUUID()}`,
      object: 'text_completion',
      created: now(),
      model: asked.model ?? servedName,
      choices: [
        {
          index: 0,
          text: tokenizer.decode(tokens),
          logprobs:
            asked.logprobs == null || faults.take('no-logprobs')
              ? null
              : completionLogprobs(generated, asked.logprobs, named),
          ...ending(generated, asked.stop_token_ids),
          token_ids: asked.return_token_ids === true ? tokens : null,
          prompt_token_ids: asked.return_token_ids === true ? [...prompt] : null,
          prompt_logprobs: promptLogprobs(generated, prompt, asked.prompt_logprobs, named),
          ...(options.weightVersions && {
            weight_versions: asked.return_weight_versions === true ? spans(generated) : null,
          }),
        },
      ],
      usage: usageOf(prompt, tokens),
      system_fingerprint: null,
    });
  }

  async function generate(call: Call): Promise<Answer> {
    const asked = bodyOf(GENERATE, call, error);
    const { token_ids: prompt, sampling_params: sampling } = asked;
    const room = engine.base.config.maxPositions - prompt.length;
    const maxTokens = Math.min(sampling.max_tokens ?? 16, Math.max(room, 0));
    const generated = await engine.generate(
      generationOf(prompt, sampling, { model: asked.model, cache_salt: asked.cache_salt, maxTokens }),
    );
    const tokens = generated.steps.map(({ token }) => token);
    return ok({
      request_id: asked.request_id ?? randomUUID(),
      model: asked.model ?? servedName,
      created: now(),
      output_mode: 'tokens',
      choices: [
        {
          index: 0,
          logprobs:
            sampling.logprobs == null || faults.take('no-logprobs')
              ? null
              : generateLogprobs(generated, sampling.logprobs),
          ...ending(generated, sampling.stop_token_ids),
          token_ids: tokens,
          weight_versions: spans(generated),
          sampling_mask: null,
          routed_experts: null,
        },
      ],
      usage: usageOf(prompt, tokens),
      prompt_logprobs: promptLogprobs(generated, prompt, sampling.prompt_logprobs, () => null),
      prompt_token_ids: asked.return_token_ids === true ? prompt : null,
    });
  }

  const spans = (generated: Generated): Json => {
    const fault = faults.take('foreign-version');
    return spansOf(generated.steps, fault && (fault.version ?? 'somebody-elses'));
  };

  async function loadAdapter(call: Call): Promise<Answer> {
    const { lora_name: name, lora_path: folder, load_inplace: inPlace } = bodyOf(LOAD_LORA, call, error);
    if (name === '' || folder === '')
      throw invalidInput("Both 'lora_name' and 'lora_path' must be provided.");
    if (name === servedName)
      throw invalidInput(`The lora adapter '${name}' conflicts with a served base model.`);
    if (!inPlace && engine.adapters.has(name)) {
      throw invalidInput(
        `The lora adapter '${name}' has already been loaded. If you want to load the adapter in place, set 'load_inplace' to True.`,
      );
    }
    try {
      await engine.loadAdapter(name, folder);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === 'ENOENT')
        return error(404, `Loading lora ${name} failed: No adapter found for ${folder}`);
      return error(500, messageOf(cause));
    }
    return ok(`Success: LoRA adapter '${name}' added successfully.`);
  }

  function unloadAdapter(call: Call): Answer {
    const { lora_name: name } = bodyOf(UNLOAD_LORA, call, error);
    if (!engine.adapters.has(name)) return error(404, `The lora adapter '${name}' cannot be found.`);
    engine.unloadAdapter(name);
    return ok(`Success: LoRA adapter '${name}' removed successfully.`);
  }

  async function rpc(call: Call): Promise<Answer> {
    const { method, kwargs } = bodyOf(RPC, call, error);
    if (method !== 'reload_weights') return error(500, `Call to collective_rpc method failed: ${method}`);
    try {
      await engine.reload(kwargs.weights_path ?? engine.base.folder);
    } catch (cause) {
      dead = true;
      process.stderr.write(`EngineCore failed: ${messageOf(cause)}\n`);
      throw new EngineDead('EngineCore encountered an issue. See stack trace (above) for the root cause.');
    }
    return ok({ results: [null] });
  }

  async function pause({ query }: Call): Promise<Answer> {
    const mode = PAUSE_MODE.safeParse(query.get('mode') ?? 'abort');
    if (!mode.success) return error(400, `mode: ${mode.error.message}`);
    engine.pause(mode.data === 'keep' ? 'all' : 'new');
    if (mode.data === 'abort') await engine.abortAll();
    if (mode.data === 'wait') await engine.drained();
    if (query.get('clear_cache') !== 'false') engine.forgetPrefixes();
    return ok({ status: 'paused' });
  }

  function check(call: Call): Answer {
    const { action, baseline } = bodyOf(CHECK, call, error);
    if (action === 'reset') return error(400, 'the stand-in keeps its weights');
    if (action === 'compare' && baseline == null)
      return error(400, "action='compare' requires a 'baseline' object");
    const own = checksumsOf(engine.base.config, engine.base.weights);
    const checksums = Object.fromEntries(
      Object.entries(own).map(([name, digest]) => [`dp0:pp0:pcp0:tp0:${name}`, digest]),
    );
    if (action === 'checksum') return ok({ checksums });
    const names = new Set([...Object.keys(checksums), ...Object.keys(baseline!)]);
    const mismatches = [...names].filter((name) => checksums[name] !== baseline![name]).toSorted();
    return ok({ match: mismatches.length === 0, mismatches });
  }

  const card = (id: string, root: string, parent: string | null): Json => ({
    id,
    object: 'model',
    created: now(),
    owned_by: 'vllm',
    root,
    parent,
    max_model_len: parent === null ? engine.base.config.maxPositions : null,
  });

  return {
    tokenPaths: ['/v1/completions', '/inference/v1/generate'],
    error,
    queueFull: error(503, 'The engine has no room for another request. Please retry later.'),
    routes: {
      'GET /health': () => ({ status: dead ? 503 : 200 }),
      'GET /version': () => ok({ version: options.version }),
      'GET /v1/models': () =>
        ok({
          object: 'list',
          data: [
            card(servedName, engine.base.folder, null),
            ...[...engine.adapters].map(([name, { path }]) => card(name, path, servedName)),
          ],
        }),
      'POST /v1/completions': complete,
      ...(options.scaleOut && { 'POST /inference/v1/generate': generate }),
      'POST /v1/load_lora_adapter': loadAdapter,
      'POST /v1/unload_lora_adapter': unloadAdapter,
      'POST /collective_rpc': rpc,
      'POST /pause': pause,
      'POST /resume': () => {
        engine.resume();
        return ok({ status: 'resumed' });
      },
      'GET /is_paused': () => ok({ is_paused: engine.paused !== 'no' }),
      'POST /reset_prefix_cache': async () => ok({ success: await engine.resetCache() }),
      'POST /update_weight_version': (call) => {
        const { new_version: version } = bodyOf(NEW_VERSION, call, error);
        engine.version = version;
        return ok({ success: true, new_version: version });
      },
      'GET /weight_info': () => ok({ weight_version: engine.version }),
      'POST /weight_checker': check,
      'GET /server_info': () =>
        ok({
          vllm_config: `model='${engine.base.folder}', max_seq_len=${engine.base.config.maxPositions}`,
          vllm_env: {},
          system_env: {},
        }),
      'POST /tokenize': (call) => {
        const tokens = engine.base.tokenizer.encode(bodyOf(TOKENIZE, call, error).prompt);
        const { maxPositions } = engine.base.config;
        return ok({ count: tokens.length, max_model_len: maxPositions, tokens, token_strs: null });
      },
    },
  };
}

function ending(
  { steps, finish }: Generated,
  stop: readonly number[] | null | undefined,
): { [key: string]: Json } {
  const last = steps.at(-1)?.token;
  const asked = finish === 'stop' && last !== undefined && stop?.includes(last) === true;
  return { finish_reason: finish, stop_reason: asked ? last : null };
}

const usageOf = (prompt: readonly number[], tokens: readonly number[]): Json => ({
  prompt_tokens: prompt.length,
  completion_tokens: tokens.length,
  total_tokens: prompt.length + tokens.length,
});

/** JSON has no −∞. */
const told = (logprob: number): number => Math.max(logprob, -9999);

/** The token itself first, and then the likeliest others, as many as were asked for. */
const candidates = (all: Distribution, token: number, most: number): number[] => [
  ...new Set([token, ...likeliest(all, most === -1 ? all.length : most)]),
];

function completionLogprobs(
  { steps }: Generated,
  most: number,
  named: (id: number) => string,
): { [key: string]: Json } {
  const tokens = steps.map(({ token }) => named(token));
  let offset = 0;
  return {
    text_offset: tokens.map((text) => (offset += text.length) - text.length),
    token_logprobs: steps.map(({ token, distribution }) => told(distribution![token]!)),
    tokens,
    top_logprobs: steps.map(({ token, distribution: all }) =>
      Object.fromEntries(candidates(all!, token, most).map((id) => [named(id), told(all![id]!)])),
    ),
  };
}

function generateLogprobs({ steps }: Generated, most: number): { [key: string]: Json } {
  const entry = (all: Distribution, id: number): { [key: string]: Json } => ({
    token_id: id,
    logprob: told(all[id]!),
    rank: rankOf(all, id),
  });
  return {
    content: steps.map(({ token, distribution: all }) => ({
      ...entry(all!, token),
      top_logprobs: candidates(all!, token, most)
        .slice(0, most === -1 ? undefined : Math.max(most, 1))
        .map((id) => entry(all!, id)),
    })),
  };
}

function promptLogprobs(
  { prompt: scored }: Generated,
  prompt: readonly number[],
  most: number | null | undefined,
  named: (id: number) => string | null,
): Json {
  if (scored === undefined || most == null) return null;
  return scored.map((all, at) => {
    if (all === undefined) return null;
    const ids = candidates(all, prompt[at]!, most);
    const one = (id: number): Json => ({
      logprob: told(all[id]!),
      rank: rankOf(all, id),
      decoded_token: named(id),
    });
    return Object.fromEntries(ids.map((id) => [String(id), one(id)]));
  });
}
