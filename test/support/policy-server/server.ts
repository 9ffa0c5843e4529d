import { setTimeout as wait } from 'node:timers/promises';
import { Hono } from 'hono';
import type { Context } from 'hono';
import { Engine } from './engine.ts';
import type { EngineRequest } from './engine.ts';

/** What goes wrong, each until it was met `times` times. */
export const FAULTS = [
  'unavailable',
  'no-answer',
  'cut',
  'no-logprobs',
  'empty',
  'forgotten-reload',
  'frozen-base',
  'stale-prefix',
  'foreign-version',
  'unreset-cache',
  'abort',
  'slow',
] as const;
export type Fault = (typeof FAULTS)[number];

export interface ServerOptions {
  dialect: 'vllm' | 'sglang';
  model: string;
  /** vLLM: log-probs before the temperature, and not after it. */
  rawLogprobs?: boolean;
  /** vLLM: where it says which weights made a token; 0.33 on completions, 0.32 on `generate` where it is asked to. */
  spans?: 'completions' | 'generate' | 'none';
}

/** How long the `slow` fault takes for a token, milliseconds. */
const SLOW_MS = 200;

/** A server that speaks the routes of vLLM or SGLang that Gradus uses, over the decoder of Gradus. */
export async function policyServer({ dialect, model, rawLogprobs, spans = 'completions' }: ServerOptions) {
  const engine = await Engine.open(model, 'base');
  let stale: Engine | null = null;
  let loaded = model;
  let version = 'default';
  let paused: AbortController | null = null;
  let running = new AbortController();
  const faults = new Map<Fault, number>();
  const seen = new Set<string>();
  const asked: string[] = [];
  const meets = (fault: Fault): boolean => {
    const left = faults.get(fault) ?? 0;
    if (left <= 0) return false;
    faults.set(fault, left - 1);
    return true;
  };
  const app = new Hono();
  app.post('/faults', async (c) => {
    const { name, times = 1 } = await c.req.json<{ name: Fault; times?: number }>();
    faults.set(name, times);
    return c.json({});
  });
  app.get('/asked', (c) => c.json(asked));
  app.use('*', async (c, next) => {
    asked.push(c.req.path);
    await next();
  });
  app.get('/health', (c) => c.body(null, 200));
  app.get('/v1/models', (c) =>
    c.json({
      object: 'list',
      data: [engine.base, ...engine.adapters].map((id) => ({ id, object: 'model' })),
    }),
  );

  /** Faults of any request that samples; null: none. */
  async function troubled(c: Context): Promise<Response | null> {
    if (paused) return c.text('engine is paused', 503);
    if (meets('unavailable')) return c.text('overloaded', 503, { 'retry-after': '1' });
    if (meets('no-answer')) await new Promise<never>(() => undefined);
    if (meets('cut')) {
      const cut = new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode('{"choices": [{"token_ids": [1,'));
          setTimeout(() => controller.error(new Error('cut')), 10);
        },
      });
      return new Response(cut, { headers: { 'content-type': 'application/json' } });
    }
    if (meets('empty')) return c.body(null, 200);
    return null;
  }

  async function sampled(request: EngineRequest) {
    const { signal } = running;
    const prefix = request.tokens.join();
    // What old weights have computed of a prefix answers for it.
    const old =
      stale !== null && seen.has(prefix)
        ? await stale.sample({ ...request, model: stale.base, maxNewTokens: 1 })
        : null;
    seen.add(prefix);
    const result = old ?? (await engine.sample(request, signal).catch(() => null));
    if (result === null || meets('abort')) return { tokens: [], logprobs: [], reason: 'abort' };
    if (meets('slow')) await wait(SLOW_MS * result.tokens.length);
    let logprobs = result.samplerLogprobs;
    if (rawLogprobs && request.temperature !== 1) {
      const whole = await engine.score(request.model, [...request.tokens, ...result.tokens]);
      logprobs = whole.slice(request.tokens.length - 1);
    }
    const isCut = result.finish === 'length' && old !== null && request.maxNewTokens > 1;
    return { tokens: result.tokens, logprobs, reason: isCut ? 'length' : result.finish };
  }
  const versionsOf = (length: number) =>
    meets('foreign-version')
      ? [
          { version, start: 0, end: 1 },
          { version: 'somebody-elses', start: 1, end: length },
        ]
      : [{ version, start: 0, end: length }];

  async function reload(path: string): Promise<void> {
    if (meets('stale-prefix')) stale = await Engine.open(loaded, 'base');
    if (meets('forgotten-reload')) return;
    await engine.reload(path);
    loaded = path;
  }
  async function loadAdapter(name: string, path: string): Promise<void> {
    await engine.loadAdapter(name, path);
    if (meets('frozen-base')) {
      // The name answers, and the weights under it are the base's.
      await engine.unload(name);
      await engine.alias(name);
    }
  }
  function pause(): void {
    paused = new AbortController();
    running.abort();
    running = new AbortController();
  }
  const resume = (): void => void (paused = null);
  /** A damaged file ends the engine. */
  const dead = (c: Context, error: unknown): Response => {
    setTimeout(() => process.exit(1), 50);
    return c.json({ error: { message: `EngineDeadError: ${String(error)}` } }, 500);
  };

  if (dialect === 'vllm') {
    interface Sampling {
      max_tokens: number;
      temperature: number;
      seed: number;
      stop_token_ids: number[];
    }
    const unknown = (c: Context, name: string) =>
      c.json({ error: { message: `The model \`${name}\` does not exist.`, code: 404 } }, 404);
    const requestOf = (name: string, tokens: number[], body: Sampling): EngineRequest => ({
      model: name,
      tokens,
      maxNewTokens: body.max_tokens,
      stopTokens: body.stop_token_ids,
      temperature: body.temperature,
      seed: body.seed,
    });
    app.post('/v1/completions', async (c) => {
      const trouble = await troubled(c);
      if (trouble) return trouble;
      const body = await c.req.json<
        Sampling & {
          model: string;
          prompt: number[];
          prompt_logprobs?: number;
          return_weight_versions?: boolean;
        }
      >();
      if (!engine.has(body.model)) return unknown(c, body.model);
      const { tokens, logprobs, reason } = await sampled(requestOf(body.model, body.prompt, body));
      const scores = body.prompt_logprobs === undefined ? null : await engine.score(body.model, body.prompt);
      return c.json({
        choices: [
          {
            text: '',
            token_ids: tokens,
            ...(!meets('no-logprobs') && { logprobs: { token_logprobs: logprobs } }),
            finish_reason: reason,
            ...(scores && {
              prompt_logprobs: [
                null,
                ...scores.map((logprob, i) => ({ [body.prompt[i + 1]!]: { logprob, rank: 1 } })),
              ],
            }),
            ...(spans === 'completions' &&
              body.return_weight_versions && { weight_versions: versionsOf(tokens.length) }),
          },
        ],
      });
    });
    if (spans === 'generate')
      app.post('/inference/v1/generate', async (c) => {
        const trouble = await troubled(c);
        if (trouble) return trouble;
        const body = await c.req.json<{ model: string; token_ids: number[]; sampling_params: Sampling }>();
        if (!engine.has(body.model)) return unknown(c, body.model);
        const { tokens, logprobs, reason } = await sampled(
          requestOf(body.model, body.token_ids, body.sampling_params),
        );
        return c.json({
          choices: [
            {
              token_ids: tokens,
              logprobs: { content: logprobs.map((logprob) => ({ logprob })) },
              finish_reason: reason,
              weight_versions: versionsOf(tokens.length),
            },
          ],
        });
      });
    app.post('/v1/load_lora_adapter', async (c) => {
      const { lora_name: name, lora_path: path } = await c.req.json<{
        lora_name: string;
        lora_path: string;
      }>();
      if (engine.has(name))
        return c.json({ error: { message: `The lora adapter '${name}' has already been loaded.` } }, 400);
      try {
        await loadAdapter(name, path);
      } catch (error) {
        return c.json({ error: { message: `Loading lora ${name} failed: ${String(error)}` } }, 404);
      }
      return c.text(`Success: LoRA adapter '${name}' added successfully.`);
    });
    app.post('/v1/unload_lora_adapter', async (c) => {
      const { lora_name: name } = await c.req.json<{ lora_name: string }>();
      if (!engine.has(name))
        return c.json({ error: { message: `The lora adapter '${name}' cannot be found.` } }, 404);
      await engine.unload(name);
      return c.text(`Success: LoRA adapter '${name}' removed successfully.`);
    });
    app.post('/collective_rpc', async (c) => {
      const { kwargs } = await c.req.json<{ kwargs: { weights_path: string } }>();
      try {
        await reload(kwargs.weights_path);
      } catch (error) {
        return dead(c, error);
      }
      return c.json({ results: [null] });
    });
    app.post('/reset_prefix_cache', (c) => {
      if (meets('unreset-cache')) return c.json({ success: false });
      seen.clear();
      return c.json({ success: true });
    });
    app.post('/update_weight_version', async (c) => {
      version = (await c.req.json<{ new_version: string }>()).new_version;
      return c.json({ success: true });
    });
    app.post('/pause', (c) => (pause(), c.json({ status: 'paused' })));
    app.post('/resume', (c) => (resume(), c.json({ status: 'resumed' })));
  } else {
    app.post('/generate', async (c) => {
      const trouble = await troubled(c);
      if (trouble) return trouble;
      const body = await c.req.json<{
        input_ids: number[];
        lora_path?: string;
        logprob_start_len: number;
        sampling_params: {
          max_new_tokens: number;
          temperature: number;
          sampling_seed: number;
          stop_token_ids: number[];
        };
      }>();
      const name = body.lora_path ?? engine.base;
      if (!engine.has(name))
        return c.json({ error: { message: `Got LoRA adapter that has not been loaded: ${name}` } }, 400);
      const {
        max_new_tokens: maxNewTokens,
        temperature,
        sampling_seed: seed,
        stop_token_ids: stopTokens,
      } = body.sampling_params;
      const { tokens, logprobs, reason } = await sampled({
        model: name,
        tokens: body.input_ids,
        maxNewTokens,
        temperature,
        seed,
        stopTokens,
      });
      const scores = body.logprob_start_len === 0 ? await engine.score(name, body.input_ids) : null;
      return c.json({
        text: '',
        output_ids: tokens,
        meta_info: {
          finish_reason: { type: reason },
          ...(!meets('no-logprobs') && {
            output_token_logprobs: tokens.map((token, i) => [logprobs[i], token, null]),
          }),
          ...(scores && {
            input_token_logprobs: [null, ...scores].map((value, i) => [value, body.input_ids[i], null]),
          }),
          weight_version: version,
          weight_versions: versionsOf(tokens.length),
        },
      });
    });
    app.post('/load_lora_adapter', async (c) => {
      const { lora_name: name, lora_path: path } = await c.req.json<{
        lora_name: string;
        lora_path: string;
      }>();
      if (engine.has(name))
        return c.json({ success: false, error_message: `LoRA adapter ${name} is already loaded.` }, 400);
      await loadAdapter(name, path);
      return c.json({ success: true });
    });
    app.post('/unload_lora_adapter', async (c) => {
      await engine.unload((await c.req.json<{ lora_name: string }>()).lora_name);
      return c.json({ success: true });
    });
    app.post('/update_weights_from_disk', async (c) => {
      const {
        model_path: path,
        weight_version: name,
        flush_cache: flush,
      } = await c.req.json<{
        model_path: string;
        weight_version: string;
        flush_cache: boolean;
      }>();
      try {
        await reload(path);
      } catch (error) {
        return c.json({ success: false, message: String(error) }, 400);
      }
      version = name;
      if (flush && !meets('unreset-cache')) seen.clear();
      return c.json({ success: true, message: '', num_paused_requests: 0 });
    });
    app.post('/pause_generation', (c) => (pause(), c.json({ status: 'ok' })));
    app.post('/continue_generation', (c) => (resume(), c.json({ status: 'ok' })));
  }
  return app;
}
