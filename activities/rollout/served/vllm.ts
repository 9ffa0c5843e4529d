import { z } from 'zod';
import { GradusError } from '../../../core/errors.ts';
import { answerOf, badAnswer, LOADING_SECONDS } from './connection.ts';
import type { ServerConnection } from './connection.ts';
import { checksumOf, finishOf, logprob, tokenId, versionSpans } from './answers.ts';
import { whilePaused } from './paused.ts';
import type { ServerApi, ServerRequest, ServerSample } from './server-api.ts';

const completion = z.object({
  choices: z
    .array(
      z.object({
        token_ids: z.array(tokenId),
        logprobs: z.object({ token_logprobs: z.array(logprob) }),
        finish_reason: z.string(),
        weight_versions: versionSpans.nullish(),
      }),
    )
    .length(1),
});
const scored = z.object({
  choices: z
    .array(z.object({ prompt_logprobs: z.array(z.record(z.string(), z.object({ logprob })).nullable()) }))
    .length(1),
});
const generated = z.object({
  choices: z
    .array(
      z.object({
        token_ids: z.array(tokenId),
        logprobs: z.object({ content: z.array(z.object({ logprob })) }),
        finish_reason: z.string(),
        weight_versions: versionSpans.nullish(),
      }),
    )
    .length(1),
});
const modelList = z.object({
  data: z.array(z.object({ id: z.string(), root: z.string().nullish() })).nonempty(),
});
const checked = z.object({ checksums: z.record(z.string(), z.string()) });

/** Each field that changes what is sampled: a model folder has defaults of its own, which vLLM fills in for absent ones. */
const samplingOf = ({ maxNewTokens, stopTokens, temperature, seed }: ServerRequest) => ({
  max_tokens: maxNewTokens,
  min_tokens: 0,
  temperature,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  presence_penalty: 0,
  frequency_penalty: 0,
  repetition_penalty: 1,
  seed,
  stop_token_ids: [...stopTokens],
  ignore_eos: true,
  skip_special_tokens: false,
});

/**
 * vLLM from 0.32 on, started with `VLLM_SERVER_DEV_MODE=1` where weights are reloaded, and with
 * `VLLM_ALLOW_RUNTIME_LORA_UPDATING=1` where adapters are loaded. Which weights made a token it says on `/v1/completions`
 * from 0.33 on, and on `/inference/v1/generate` where `--enable-scale-out` is given; the first request finds out.
 */
export function vllm({ url, ask }: ServerConnection): ServerApi {
  let spans: 'completions' | 'generate' | 'none' | undefined;

  async function complete(request: ServerRequest, signal: AbortSignal): Promise<ServerSample> {
    const body = {
      model: request.model,
      prompt: [...request.tokens],
      ...samplingOf(request),
      n: 1,
      stream: false,
      echo: false,
      logprobs: 0,
      return_token_ids: true,
      return_weight_versions: true,
      cache_salt: request.salt,
    };
    const { choices } = answerOf(
      completion,
      await ask('/v1/completions', body, signal),
      `${url}/v1/completions`,
    );
    const [choice] = choices;
    return {
      tokens: choice!.token_ids,
      logprobs: choice!.logprobs.token_logprobs,
      finish: finishOf(url, choice!.finish_reason),
      versions: choice!.weight_versions ?? null,
    };
  }

  async function generate(request: ServerRequest, signal: AbortSignal): Promise<ServerSample> {
    const body = {
      model: request.model,
      token_ids: [...request.tokens],
      sampling_params: { ...samplingOf(request), logprobs: 0, detokenize: false },
      cache_salt: request.salt,
    };
    const path = '/inference/v1/generate';
    const { choices } = answerOf(generated, await ask(path, body, signal), `${url}${path}`);
    const [choice] = choices;
    return {
      tokens: choice!.token_ids,
      logprobs: choice!.logprobs.content.map(({ logprob: value }) => value),
      finish: finishOf(url, choice!.finish_reason),
      versions: choice!.weight_versions ?? null,
    };
  }

  /** Where spans are said on neither route, tokens come from the one that every version has. */
  async function findSpans(request: ServerRequest, signal: AbortSignal): Promise<ServerSample> {
    const completed = await complete(request, signal);
    if (completed.versions !== null) {
      spans = 'completions';
      return completed;
    }
    try {
      const other = await generate(request, signal);
      spans = other.versions === null ? 'none' : 'generate';
      return other;
    } catch (error) {
      if (!(error instanceof GradusError) || error.type !== 'unknown-model') throw error;
      spans = 'none';
      return completed;
    }
  }

  return {
    healthy: async (signal) => void (await ask('/health', null, signal, 10)),
    models: async (signal) =>
      answerOf(modelList, await ask('/v1/models', null, signal, 30), `${url}/v1/models`).data.map(
        ({ id }) => id,
      ),
    says: async (model, signal) => {
      const { data } = answerOf(modelList, await ask('/v1/models', null, signal, 30), `${url}/v1/models`);
      const root = data.find(({ id }) => id === model)?.root;
      const sums = await checksumOf(
        () => ask('/weight_checker', { action: 'checksum' }, signal, LOADING_SECONDS),
        (answer) => {
          const { checksums } = answerOf(checked, answer, `${url}/weight_checker`);
          return JSON.stringify(Object.entries(checksums).toSorted(([a], [b]) => (a < b ? -1 : 1)));
        },
      );
      return { ...(root && { root }), ...(sums !== null && { checksum: sums }) };
    },
    sample: (request, signal) =>
      spans === undefined
        ? findSpans(request, signal)
        : (spans === 'generate' ? generate : complete)(request, signal),
    score: async ({ model, tokens, salt }, signal) => {
      const body = {
        model,
        prompt: [...tokens],
        ...samplingOf({ model, tokens, salt, maxNewTokens: 1, stopTokens: [], temperature: 1, seed: 0 }),
        prompt_logprobs: 0,
        return_token_ids: true,
        cache_salt: salt,
      };
      const { choices } = answerOf(
        scored,
        await ask('/v1/completions', body, signal),
        `${url}: prompt_logprobs`,
      );
      return choices[0]!.prompt_logprobs.slice(1).map((at, i) => {
        const value = at?.[String(tokens[i + 1])];
        if (value === undefined) throw badAnswer(`${url}: no log-prob of token ${i + 1} of a prompt`);
        return value.logprob;
      });
    },
    loadAdapter: async (name, path, signal) => {
      try {
        await ask('/v1/load_lora_adapter', { lora_name: name, lora_path: path }, signal, LOADING_SECONDS);
      } catch (error) {
        // The name is the digest's: what is loaded under it is this.
        const loaded =
          error instanceof GradusError && /already been loaded|already loaded/.test(error.message);
        if (!loaded) throw error;
      }
    },
    unloadAdapter: async (name, signal) =>
      void (await ask('/v1/unload_lora_adapter', { lora_name: name }, signal)),
    reload: (path, version, signal) =>
      whilePaused(
        {
          pause: (within) => ask('/pause?mode=abort', {}, within),
          resume: (within) => ask('/resume', {}, within),
        },
        signal,
        async () => {
          const body = { method: 'reload_weights', kwargs: { weights_path: path } };
          await ask('/collective_rpc', body, signal, LOADING_SECONDS);
          const reset = await ask('/reset_prefix_cache', {}, signal);
          // A reset while blocks are held does nothing, and only its body says so.
          if (reset !== null && typeof reset === 'object' && 'success' in reset && reset.success !== true)
            throw badAnswer(`${url}: the prefix cache was not reset, requests still hold blocks of it`);
          await ask('/update_weight_version', { new_version: version }, signal);
        },
      ),
  };
}
