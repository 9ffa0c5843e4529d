import { z } from 'zod';
import { GradusError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import { checksumOf, finishOf, logprob, tokenId, versionSpans } from './answers.ts';
import { answerOf, badAnswer, LOADING_SECONDS } from './connection.ts';
import type { ServerConnection } from './connection.ts';
import { whilePaused } from './paused.ts';
import type { ServerApi, ServerRequest } from './server-api.ts';

/** Log-prob, token, and its text where it was asked for. */
const tokenLogprob = z.tuple([logprob, tokenId], z.unknown());
const generated = z.object({
  output_ids: z.array(tokenId),
  meta_info: z.object({
    finish_reason: z.object({ type: z.string() }).nullable(),
    output_token_logprobs: z.array(tokenLogprob),
    weight_version: z.string().nullish(),
    weight_versions: versionSpans.nullish(),
  }),
});
const scored = z.object({
  meta_info: z.object({
    input_token_logprobs: z.array(z.tuple([logprob.nullable(), tokenId], z.unknown())),
  }),
});
const modelList = z.object({ data: z.array(z.object({ id: z.string() })).nonempty() });
const done = z.object({ success: z.literal(true) });
const modelInfo = z.object({ model_path: z.string() });
const checked = z.object({ per_engine_checksum: z.string() });

/** Each field that changes what is sampled: a model folder has defaults of its own. */
const samplingOf = ({ maxNewTokens, stopTokens, temperature, seed }: ServerRequest) => ({
  max_new_tokens: maxNewTokens,
  min_new_tokens: 0,
  temperature,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  presence_penalty: 0,
  frequency_penalty: 0,
  repetition_penalty: 1,
  sampling_seed: seed,
  stop_token_ids: [...stopTokens],
  ignore_eos: true,
  skip_special_tokens: false,
  n: 1,
});

/** SGLang from 0.5.23 on; with `--enable-lora` where adapters are loaded. */
export function sglang({ url, ask }: ServerConnection): ServerApi {
  let base: string | undefined;
  const models = async (signal: AbortSignal): Promise<string[]> =>
    answerOf(modelList, await ask('/v1/models', null, signal, 30), `${url}/v1/models`).data.map(
      ({ id }) => id,
    );
  const adapterOf = async (model: string, signal: AbortSignal) => {
    base ??= (await models(signal))[0]!;
    return model === base ? {} : { lora_path: model };
  };
  /** An adapter that it does not hold it refuses like a wrong field. */
  const askLoaded = async (body: Json, signal: AbortSignal): Promise<unknown> => {
    try {
      return await ask('/generate', body, signal);
    } catch (error) {
      const unknown =
        error instanceof GradusError &&
        error.type === 'server-request' &&
        /lora|adapter/i.test(error.message) &&
        /not (been )?(loaded|found|registered)|unknown/i.test(error.message);
      if (!unknown) throw error;
      throw new GradusError('policy', 'unknown-model', error.message, { retryable: true, cause: error });
    }
  };

  return {
    healthy: async (signal) => void (await ask('/health', null, signal, 10)),
    models,
    says: async (_, signal) => {
      const at = '/get_model_info';
      const { model_path: root } = answerOf(modelInfo, await ask(at, null, signal, 30), `${url}${at}`);
      const checksum = await checksumOf(
        () => ask('/weights_checker', { action: 'checksum' }, signal, LOADING_SECONDS),
        (answer) => answerOf(checked, answer, `${url}/weights_checker`).per_engine_checksum,
      );
      return { root, ...(checksum !== null && { checksum }) };
    },
    sample: async (request, signal) => {
      const body = {
        input_ids: [...request.tokens],
        sampling_params: samplingOf(request),
        return_logprob: true,
        logprob_start_len: -1,
        extra_key: request.salt,
        stream: false,
        ...(await adapterOf(request.model, signal)),
      };
      const answer = answerOf(generated, await askLoaded(body, signal), `${url}/generate`);
      const { finish_reason: reason, output_token_logprobs: pairs, ...meta } = answer.meta_info;
      const version = meta.weight_version;
      return {
        tokens: answer.output_ids,
        logprobs: pairs.map(([value]) => value),
        finish: finishOf(url, reason?.type ?? 'nothing'),
        versions:
          meta.weight_versions ?? (version ? [{ version, start: 0, end: answer.output_ids.length }] : null),
      };
    },
    score: async ({ model, tokens, salt }, signal) => {
      const body = {
        input_ids: [...tokens],
        sampling_params: samplingOf({
          model,
          tokens,
          salt,
          maxNewTokens: 1,
          stopTokens: [],
          temperature: 1,
          seed: 0,
        }),
        return_logprob: true,
        logprob_start_len: 0,
        extra_key: salt,
        ...(await adapterOf(model, signal)),
      };
      const { meta_info: meta } = answerOf(scored, await askLoaded(body, signal), `${url}: scores`);
      const values = meta.input_token_logprobs;
      if (values.length !== tokens.length || values.some(([, token], i) => token !== tokens[i]))
        throw badAnswer(`${url}: scores of other tokens than those that were asked about`);
      return values.slice(1).map(([value], i) => {
        if (value === null) throw badAnswer(`${url}: no log-prob of token ${i + 1} of a prompt`);
        return value;
      });
    },
    loadAdapter: async (name, path, signal) => {
      try {
        const answer = await ask(
          '/load_lora_adapter',
          { lora_name: name, lora_path: path },
          signal,
          LOADING_SECONDS,
        );
        answerOf(done, answer, `${url}/load_lora_adapter`);
      } catch (error) {
        // The name is the digest's: what is loaded under it is this.
        const loaded =
          error instanceof GradusError && /already loaded|already been loaded/.test(error.message);
        if (!loaded) throw error;
      }
    },
    unloadAdapter: async (name, signal) =>
      void (await ask('/unload_lora_adapter', { lora_name: name }, signal)),
    reload: (path, version, signal) =>
      whilePaused(
        {
          pause: (within) => ask('/pause_generation', { mode: 'abort' }, within),
          resume: (within) => ask('/continue_generation', {}, within),
        },
        signal,
        async () => {
          const body = {
            model_path: path,
            weight_version: version,
            flush_cache: true,
            abort_all_requests: true,
          };
          const answer = await ask('/update_weights_from_disk', body, signal, LOADING_SECONDS);
          answerOf(done, answer, `${url}/update_weights_from_disk`);
        },
      ),
  };
}
