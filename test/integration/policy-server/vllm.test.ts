import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { gap, withScores } from '../../support/policy-server/reference-scores.ts';
import { writeServedFolders } from '../../support/policy-server/served-folders.ts';
import type { ServedFolders } from '../../support/policy-server/served-folders.ts';
import { startPolicyServer } from '../../support/policy-server/start-policy-server.ts';
import type { PolicyServer } from '../../support/policy-server/start-policy-server.ts';
import { promptOf, VllmClient, vllmContract } from '../../support/policy-server/vllm-contract.ts';

// Starting a process takes seconds, and minutes on a machine where others are at work.
const LONG = 300_000;

let root: string;
let folders: ServedFolders;
let server: PolicyServer;
let client: VllmClient;
let prompt: number[];

beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'gradus-served-'));
  folders = await writeServedFolders(root);
  server = await startPolicyServer({
    dialect: 'vllm',
    model: folders.a.folder,
    servedName: 'm',
    weightVersions: true,
  });
  client = new VllmClient(server.url);
  prompt = promptOf('faults', 40, folders.config.vocabSize);
}, LONG);

afterAll(async () => {
  await server.stop();
  await rm(root, { recursive: true, force: true });
});

afterEach(async () => {
  if (!server.exited) await server.healed();
});

const score = (which: 'a' | 'b', tokens: readonly number[], temperature = 1) =>
  withScores(folders.config, folders[which].weights, undefined, (of) => of(prompt, tokens, temperature));

describe('the stand-in for vLLM', { timeout: LONG }, () => {
  it('keeps the contract that the real one is held to', async () => {
    const rows = await vllmContract(server.url, folders, { tolerance: 1e-5 });
    expect(rows.filter(({ held }) => !held)).toEqual([]);
    expect(rows.length).toBeGreaterThan(45);
  });

  it('tells versions of a completion where it is asked to, as 0.33', async () => {
    expect((await client.complete(prompt)).versions).toBeNull();
    const asked = await client.complete(prompt, { return_weight_versions: true });
    expect(asked.versions).toEqual([{ version: 'default', start: 0, end: 16 }]);
    await server.fault({ name: 'foreign-version', times: 1 });
    const foreign = await client.complete(prompt, { return_weight_versions: true });
    expect(foreign.versions).toEqual([{ version: 'somebody-elses', start: 0, end: 16 }]);
  });

  it('refuses for a time, with and without a word of when', async () => {
    await server.fault({ name: 'unavailable', times: 1, seconds: 7 });
    const refused = await fetch(`${server.url}/v1/completions`, { method: 'POST', body: '{}' });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '7']);
    await server.fault({ name: 'queue-full', times: 1 });
    expect((await client.complete(prompt)).status).toBe(503);
    expect((await client.complete(prompt)).status).toBe(200);
  });

  it('is silent until it is released', async () => {
    await server.fault({ name: 'silent', times: 1 });
    const waiting = client.complete(prompt);
    await expect.poll(async () => (await server.requests()).at(-1)?.path).toBe('/v1/completions');
    const other = client.complete(prompt);
    expect((await other).status).toBe(200);
    await server.release();
    expect((await waiting).tokens).toEqual((await other).tokens);
  });

  it('cuts an answer, answers nothing, and leaves out log-probs', async () => {
    await server.fault({ name: 'cut', times: 1 });
    await expect(client.complete(prompt)).rejects.toThrow(TypeError);
    await server.fault({ name: 'empty', times: 1 });
    const empty = await client.ask('POST', '/v1/completions', { prompt });
    expect([empty.status, empty.text]).toEqual([200, '']);
    await server.fault({ name: 'no-logprobs', times: 1 });
    const bare = await client.complete(prompt);
    expect([bare.tokens.length, bare.logprobs]).toEqual([16, []]);
  });

  it('aborts a turn, and is slow', async () => {
    await server.fault({ name: 'abort', times: 1, tokens: 3 });
    const aborted = await client.complete(prompt);
    expect([aborted.tokens.length, aborted.finish]).toEqual([3, 'abort']);
    await server.fault({ name: 'slow', ms: 20 });
    const started = performance.now();
    await client.complete(prompt, { max_tokens: 10 });
    expect(performance.now() - started).toBeGreaterThan(190);
  });

  it('aborts what runs when it is paused so, and says that it reset nothing while something runs', async () => {
    await server.fault({ name: 'slow', ms: 300 });
    const running = client.complete(prompt, { max_tokens: 400 });
    const reset = async () => (await client.ask('POST', '/reset_prefix_cache')).body;
    await expect.poll(reset).toEqual({ success: false });
    await client.ask('POST', '/pause');
    expect((await running).finish).toBe('abort');
    expect(await reset()).toEqual({ success: true });
    await client.ask('POST', '/resume');
    await server.fault({ name: 'reset-refused', times: 1 });
    expect(await reset()).toEqual({ success: false });
  });

  it('tells in spans which weights drew what, over a reload under way', async () => {
    await server.fault({ name: 'slow', ms: 20 });
    const changedUnderWay = async () => {
      await client.ask('POST', '/update_weight_version', { new_version: 'default' });
      const running = client.generate(prompt, { max_tokens: 60 });
      await expect
        .poll(async () => (await client.ask('POST', '/reset_prefix_cache')).body)
        .toEqual({ success: false });
      await client.ask('POST', '/pause?mode=keep');
      await client.ask('POST', '/update_weight_version', { new_version: 'next' });
      await client.ask('POST', '/resume');
      return (await running).versions!;
    };
    let versions = await changedUnderWay();
    // Where a busy machine has changed the weights before the first token or after the last: once more.
    for (let again = 0; again < 10 && versions.length < 2; again++) versions = await changedUnderWay();
    expect(versions.map(({ version }) => version)).toEqual(['default', 'next']);
    expect([versions[0]!.start, versions[1]!.end]).toEqual([0, 60]);
    expect(versions[0]!.end).toBe(versions[1]!.start);
    await client.ask('POST', '/update_weight_version', { new_version: 'default' });
  });

  it('forgets a reload, forgets a reset, and serves the base for an adapter', async () => {
    const reload = (folder: string) =>
      client.ask('POST', '/collective_rpc', { method: 'reload_weights', kwargs: { weights_path: folder } });
    await server.fault({ name: 'load-forgotten', times: 1 });
    expect((await reload(folders.b.folder)).body).toEqual({ results: [null] });
    await client.ask('POST', '/reset_prefix_cache');
    const old = await client.complete(prompt);
    expect(gap(old.logprobs, await score('a', old.tokens))).toBeLessThan(1e-5);

    await server.fault({ name: 'reset-forgotten', times: 1 });
    await reload(folders.b.folder);
    expect((await client.ask('POST', '/reset_prefix_cache')).body).toEqual({ success: true });
    const stale = await client.complete(prompt);
    expect(gap(stale.logprobs, await score('a', stale.tokens))).toBeLessThan(1e-5);
    await client.ask('POST', '/reset_prefix_cache');
    const fresh = await client.complete(prompt);
    expect(gap(fresh.logprobs, await score('b', fresh.tokens))).toBeLessThan(1e-5);

    await client.ask('POST', '/v1/load_lora_adapter', {
      lora_name: 'p',
      lora_path: folders.adapters[0].folder,
    });
    await server.fault({ name: 'base-for-adapter', times: 1 });
    const base = await client.complete(prompt, { model: 'p' });
    expect(gap(base.logprobs, await score('b', base.tokens))).toBeLessThan(1e-5);
    const adapted = await client.complete(prompt, { model: 'p' });
    expect(gap(adapted.logprobs, await score('b', adapted.tokens))).toBeGreaterThan(0.01);
  });

  it('has the old weights, no version and no adapter after a restart', async () => {
    const pid = server.pid;
    await client.ask('POST', '/update_weight_version', { new_version: 'next' });
    await server.restart();
    expect(server.pid).not.toBe(pid);
    expect((await client.ask('GET', '/weight_info')).body).toEqual({ weight_version: 'default' });
    expect((await client.complete(prompt, { model: 'p' })).status).toBe(404);
    const old = await client.complete(prompt);
    expect(gap(old.logprobs, await score('a', old.tokens))).toBeLessThan(1e-5);
  });

  it('dies of a file that ends in its middle', async () => {
    const asked = { method: 'reload_weights', kwargs: { weights_path: folders.truncated } };
    const { status, text } = await client.ask('POST', '/collective_rpc', asked);
    expect(status).toBe(500);
    expect(text).toContain('EngineCore encountered an issue');
    expect(await server.ended()).toBe(1);
    await server.restart();
  });

  it('has processed log-probs, among what is left, and shows another tokenizer', async () => {
    const other = await startPolicyServer({
      dialect: 'vllm',
      model: folders.otherTokenizer,
      servedName: 'm',
      logprobsMode: 'processed_logprobs',
    });
    try {
      const theirs = new VllmClient(other.url);
      const hot = await theirs.complete(prompt, { temperature: 0.7 });
      expect(gap(hot.logprobs, await score('a', hot.tokens, 0.7))).toBeLessThan(1e-5);
      const only = await theirs.complete(prompt, { top_k: 1 });
      expect(
        gap(
          only.logprobs,
          only.tokens.map(() => 0),
        ),
      ).toBeLessThan(1e-9);
      expect((await theirs.complete(prompt, { return_weight_versions: true })).versions).toBeUndefined();
      const ids = async (of: VllmClient) =>
        ((await of.ask('POST', '/tokenize', { prompt: 'what is the sum' })).body as { tokens: number[] })
          .tokens;
      expect(await ids(theirs)).not.toEqual(await ids(client));
    } finally {
      await other.stop();
    }
  });
});
