import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Json } from '../../../core/json/json.ts';
import { checksumsOf, digestOf, overallChecksum } from '../../support/policy-server/checksums.ts';
import { gap, withScores } from '../../support/policy-server/reference-scores.ts';
import { writeServedFolders } from '../../support/policy-server/served-folders.ts';
import type { ServedFolders } from '../../support/policy-server/served-folders.ts';
import { startPolicyServer } from '../../support/policy-server/start-policy-server.ts';
import type { PolicyServer } from '../../support/policy-server/start-policy-server.ts';
import { promptOf } from '../../support/policy-server/vllm-contract.ts';

// Starting a process takes seconds, and minutes on a machine where others are at work.
const LONG = 300_000;

type Scored = [number | null, number, null];
interface Generated {
  output_ids: number[];
  meta_info: {
    finish_reason: Json;
    prompt_tokens: number;
    completion_tokens: number;
    weight_version: string;
    weight_versions: Json;
    input_token_logprobs: Scored[];
    output_token_logprobs: Scored[];
  };
}

let root: string;
let folders: ServedFolders;
let server: PolicyServer;
let prompt: number[];

beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'gradus-served-'));
  folders = await writeServedFolders(root);
  server = await startPolicyServer({ dialect: 'sglang', model: folders.a.folder });
  prompt = promptOf('sglang', 40, folders.config.vocabSize);
}, LONG);

afterAll(async () => {
  await server.stop();
  await rm(root, { recursive: true, force: true });
});

async function ask(path: string, body?: Json): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${server.url}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json') === true && text !== '';
  return { status: response.status, body: isJson ? (JSON.parse(text) as unknown) : text };
}

async function generate(
  sampling: { [field: string]: Json } = {},
  more: { [field: string]: Json } = {},
): Promise<Generated> {
  const params = { max_new_tokens: 12, temperature: 1, sampling_seed: 1, ignore_eos: true, ...sampling };
  const { status, body } = await ask('/generate', {
    input_ids: prompt,
    sampling_params: params,
    return_logprob: true,
    ...more,
  });
  expect(status).toBe(200);
  return body as Generated;
}

const logprobs = (scored: readonly Scored[]): (number | null)[] => scored.map(([logprob]) => logprob);
const score = (which: 'a' | 'b', tokens: readonly number[], temperature = 1) =>
  withScores(folders.config, folders[which].weights, undefined, (of) => of(prompt, tokens, temperature));

describe('the stand-in for SGLang', { timeout: LONG }, () => {
  it('draws by its seed, and tells log-probs after the temperature and before any cut', async () => {
    const first = await generate();
    expect((await generate()).output_ids).toEqual(first.output_ids);
    expect((await generate({ sampling_seed: 2 })).output_ids).not.toEqual(first.output_ids);
    const { finish_reason, prompt_tokens, completion_tokens, output_token_logprobs } = first.meta_info;
    expect([finish_reason, prompt_tokens, completion_tokens]).toEqual([
      { type: 'length', length: 12 },
      40,
      12,
    ]);
    expect(output_token_logprobs.map(([, id, text]) => [id, text])).toEqual(
      first.output_ids.map((id) => [id, null]),
    );
    const cut = await generate({ temperature: 0.7, top_k: 5, top_p: 0.8, min_p: 0.05 });
    expect(
      gap(logprobs(cut.meta_info.output_token_logprobs), await score('a', cut.output_ids, 0.7)),
    ).toBeLessThan(1e-5);
    const stop = first.output_ids[3]!;
    const stopped = await generate({ stop_token_ids: [stop] });
    expect(stopped.meta_info.finish_reason).toEqual({ type: 'stop', matched: stop });
    expect(stopped.output_ids.at(-1)).toBe(stop);
  });

  it('scores a prompt', async () => {
    const { meta_info: told } = await generate({ max_new_tokens: 1 }, { logprob_start_len: 0 });
    expect(told.input_token_logprobs.map(([, id]) => id)).toEqual(prompt);
    expect(told.input_token_logprobs[0]![0]).toBeNull();
    const expected = await withScores(folders.config, folders.a.weights, undefined, (of) =>
      of(prompt.slice(0, 1), prompt.slice(1)),
    );
    expect(gap(logprobs(told.input_token_logprobs.slice(1)), expected)).toBeLessThan(1e-5);
  });

  it('takes adapters by name and path', async () => {
    const [one] = folders.adapters;
    const loading = { lora_name: 'p', lora_path: one.folder };
    expect(await ask('/load_lora_adapter', loading)).toEqual({
      status: 200,
      body: { success: true, error_message: null, loaded_adapters: { p: one.folder } },
    });
    expect((await ask('/load_lora_adapter', loading)).status).toBe(400);
    const adapted = await generate({}, { lora_path: 'p' });
    const expected = await withScores(folders.config, folders.a.weights, one.adapter, (of) =>
      of(prompt, adapted.output_ids),
    );
    expect(gap(logprobs(adapted.meta_info.output_token_logprobs), expected)).toBeLessThan(1e-5);
    expect((await ask('/unload_lora_adapter', { lora_name: 'p' })).status).toBe(200);
    expect((await ask('/generate', { input_ids: prompt, lora_path: 'p' })).status).toBe(400);
  });

  it('takes weights from disk, and keeps its own where they cannot be read', async () => {
    const bad = await ask('/update_weights_from_disk', {
      model_path: folders.truncated,
      weight_version: 'bad',
    });
    expect(bad).toMatchObject({ status: 400, body: { success: false } });
    const kept = await generate();
    expect(kept.meta_info.weight_version).toBe('default');
    expect(
      gap(logprobs(kept.meta_info.output_token_logprobs), await score('a', kept.output_ids)),
    ).toBeLessThan(1e-5);

    expect((await ask('/pause_generation', { mode: 'retract' })).status).toBe(200);
    const unflushed = { model_path: folders.b.folder, weight_version: 'b', flush_cache: false };
    expect(await ask('/update_weights_from_disk', unflushed)).toMatchObject({
      status: 200,
      body: { success: true },
    });
    await ask('/continue_generation', {});
    const stale = await generate();
    expect(
      gap(logprobs(stale.meta_info.output_token_logprobs), await score('a', stale.output_ids)),
    ).toBeLessThan(1e-5);
    const salted = await generate({}, { extra_key: 'b' });
    expect(
      gap(logprobs(salted.meta_info.output_token_logprobs), await score('b', salted.output_ids)),
    ).toBeLessThan(1e-5);
    expect((await ask('/flush_cache', {})).status).toBe(200);
    const fresh = await generate();
    expect(
      gap(logprobs(fresh.meta_info.output_token_logprobs), await score('b', fresh.output_ids)),
    ).toBeLessThan(1e-5);
    expect(fresh.meta_info.weight_versions).toEqual([{ version: 'b', start: 0, end: 12 }]);
    const checked = (await ask('/weights_checker', { action: 'checksum' })).body;
    const overall = overallChecksum(checksumsOf(folders.config, folders.b.weights));
    expect(checked).toMatchObject({ success: true, per_engine_checksum: digestOf(overall) });
    expect((await ask('/model_info')).body).toMatchObject({ weight_version: 'b' });
  });

  it('aborts what runs when it is paused so', async () => {
    await server.fault({ name: 'slow', ms: 300 });
    const running = generate({ max_new_tokens: 400 });
    await expect.poll(async () => (await ask('/flush_cache', {})).status).toBe(400);
    await ask('/pause_generation', {});
    expect((await running).meta_info.finish_reason).toMatchObject({ type: 'abort' });
    await ask('/continue_generation', {});
    await server.healed();
    await server.fault({ name: 'queue-full', times: 1 });
    expect((await ask('/generate', { input_ids: prompt })).status).toBe(503);
  });
});
