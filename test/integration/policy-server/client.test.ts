import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../../../activities/rollout/served/connection.ts';
import { sglang } from '../../../activities/rollout/served/sglang.ts';
import { vllm } from '../../../activities/rollout/served/vllm.ts';
import { gap, withScores } from '../../support/policy-server/reference-scores.ts';
import { writeServedFolders } from '../../support/policy-server/served-folders.ts';
import type { ServedFolders } from '../../support/policy-server/served-folders.ts';
import { startPolicyServer } from '../../support/policy-server/start-policy-server.ts';
import { promptOf } from '../../support/policy-server/vllm-contract.ts';

// Starting a process takes seconds, and minutes on a machine where others are at work.
const LONG = 300_000;
const { signal } = new AbortController();

let root: string;
let folders: ServedFolders;

beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'gradus-served-'));
  folders = await writeServedFolders(root);
}, LONG);

afterAll(() => rm(root, { recursive: true, force: true }));

describe.each([
  { name: 'vLLM 0.32', dialect: 'vllm', weightVersions: false, api: vllm },
  { name: 'vLLM 0.33', dialect: 'vllm', weightVersions: true, api: vllm },
  { name: 'SGLang', dialect: 'sglang', weightVersions: false, api: sglang },
] as const)('what Gradus asks of $name', { timeout: LONG }, ({ dialect, weightVersions, api }) => {
  it('is answered from the weights and adapters that it handed over', async () => {
    const { a, b, config, adapters, truncated } = folders;
    const server = await startPolicyServer({ dialect, model: a.folder, servedName: 'm', weightVersions });
    const connection = connect(server.url, 60);
    const client = api(connection);
    const tokens = promptOf('client', 40, config.vocabSize);
    const sampling = { maxNewTokens: 8, stopTokens: [], temperature: 1, seed: 3 };
    const asked = (model: string, salt: string) => ({ model, tokens, salt, ...sampling });
    const scores = (weights: typeof a.weights, adapter: (typeof adapters)[0]['adapter'] | undefined) =>
      withScores(config, weights, adapter, async (of) => ({
        sampled: (ids: readonly number[]) => of(tokens, ids),
        prompt: await of(tokens.slice(0, 1), tokens.slice(1)),
      }));
    const holds = async (
      model: string,
      salt: string,
      weights: typeof a.weights,
      adapter?: (typeof adapters)[0]['adapter'],
    ) => {
      const one = await client.sample(asked(model, salt), signal);
      const expected = await withScores(config, weights, adapter, (of) => of(tokens, one.tokens));
      expect(gap(one.logprobs, expected)).toBeLessThan(1e-5);
      const scored = await client.score({ model, tokens, salt }, signal);
      expect(gap(scored, (await scores(weights, adapter)).prompt)).toBeLessThan(1e-5);
      return one;
    };
    try {
      expect(await client.models(signal)).toEqual(['m']);
      const first = await holds('m', 'one', a.weights);
      expect(first.versions).toEqual([{ version: 'default', start: 0, end: 8 }]);
      await client.loadAdapter('p', adapters[0].folder, signal);
      // A hand-over that is repeated is no failure.
      await client.loadAdapter('p', adapters[0].folder, signal);
      await holds('p', 'one', a.weights, adapters[0].adapter);
      await client.reload(b.folder, 'next', signal);
      const second = await holds('m', 'one', b.weights);
      expect(second.versions).toEqual([{ version: 'next', start: 0, end: 8 }]);
      await client.unloadAdapter('p', signal);
      await expect(client.sample(asked('p', 'one'), signal)).rejects.toMatchObject({ type: 'unknown-model' });
      await server.fault({ name: 'queue-full', times: 1 });
      await expect(client.sample(asked('m', 'one'), signal)).rejects.toMatchObject({ type: 'server-away' });
      await expect(client.reload(truncated, 'broken', signal)).rejects.toMatchObject({ boundary: 'policy' });
    } finally {
      await connection.close();
      await server.stop();
    }
  });
});
