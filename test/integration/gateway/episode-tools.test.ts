import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { offeredTools, withCalls } from '../../../activities/rollout/agents/environment-tools.ts';
import type { AgentTools } from '../../../activities/rollout/agents/environment-tools.ts';
import type { Episode } from '../../../core/episode/episode.ts';
import { defineAgentLoop } from '../../../core/extensions/agent-loop.ts';
import { hostedHere } from '../../../environments/host/hosted-environment.ts';
import type { AgentEpisode } from '../../../gateway/agent-episode.ts';
import { runLoop } from '../../../gateway/run-loop.ts';
import { serveGateway } from '../../../gateway/server.ts';
import depot from '../../support/depot-module.ts';
import { episodeOptions, randomPolicy } from '../../support/gateway.ts';
import { until } from '../../support/run-client.ts';
import { openTestStore } from '../../support/test-store.ts';

// The tools of an environment as an agent calls them: over HTTP, from a real store, with a real environment.

const { store } = await openTestStore();
const policy = await randomPolicy();
const gateway = await serveGateway();
const scratch = await mkdtemp(path.join(tmpdir(), 'gradus-letters-'));
const letters = path.join(scratch, 'letters');
beforeAll(() => void (process.env['GRADUS_TEST_CALLS'] = letters));
beforeEach(() => writeFile(letters, ''));
afterAll(async () => {
  await gateway.close();
  await policy.close();
  await rm(scratch, { recursive: true, force: true });
});

const environment = hostedHere(depot);
const about = (id: string, mostCalls = 20): AgentTools => ({
  environment,
  ref: { environment: 'depot', split: 'train', level: 1, index: 0 },
  tools: environment.tools,
  episodeId: `episodes/${id}`,
  mostCalls,
  incident: undefined,
  putImages: (called) => Promise.resolve(called),
});

/** `id` names the folder: another opening is another attempt at the episode. */
let openings = 0;
const open = (id: string, more: { startsOver?: boolean; mostCalls?: number } = {}): Promise<AgentEpisode> =>
  gateway.open(
    episodeOptions(policy, store, `${id}-${++openings}`, {
      folder: `agents/${id}`,
      startsOver: more.startsOver ?? true,
      tools: offeredTools(about(id, more.mostCalls)),
    }),
  );

const urlOf = (episode: AgentEpisode): string => gateway.variablesFor(episode)['GRADUS_TOOLS_URL']!;
async function post(episode: AgentEpisode, name: string, given: object, headers = {}, signal?: AbortSignal) {
  const response = await fetch(`${urlOf(episode)}/${name}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(given),
    ...(signal && { signal }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}
const sent = async () => (await readFile(letters, 'utf8')).split('\n').filter((line) => line !== '');
const refused = (status: number, code: string, message: string) => ({
  status,
  body: { error: { code, message: expect.stringContaining(message) as string } },
});

test('a plain request calls a tool, and equal requests are other calls', async () => {
  const episode = await open('plain');
  expect(await post(episode, 'pack', { thing: 'cup' })).toEqual({
    status: 200,
    body: { text: '1 packed', error: null },
  });
  expect((await post(episode, 'pack', { thing: 'cup' })).body['text']).toBe('2 packed');
  expect((await post(episode, 'send', { to: 'A' })).body['text']).toBe('sent to A');
  expect(await sent()).toEqual(['episodes/plain/3']);
  const listed = (await (await fetch(urlOf(episode))).json()) as { tools: { function: { name: string } }[] };
  expect(listed.tools.map((one) => one.function.name)).toEqual(['pack', 'send']);
});

test('by MCP it is the same, and what a tool refuses is told as an error of its own', async () => {
  const episode = await open('mcp');
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(urlOf(episode))));
  const { tools } = await client.listTools();
  expect(tools).toMatchObject([
    { name: 'pack', description: 'Packs a thing into the box.', inputSchema: { required: ['thing'] } },
    { name: 'send' },
  ]);
  const call = (name: string, given: Record<string, unknown>) => client.callTool({ name, arguments: given });
  const text = (told: string) => [{ type: 'text', text: told }];
  expect(await call('pack', { thing: 'cup' })).toMatchObject({ content: text('1 packed') });
  expect(await call('pack', { thong: 'cup' })).toMatchObject({ isError: true });
  expect(await call('throw', {})).toMatchObject({
    isError: true,
    content: text('error: no tool throw; tools: pack, send'),
  });
  await episode.close();
  expect(await call('pack', { thing: 'cup' })).toMatchObject({
    isError: true,
    content: text('episode_ended: No more calls are made in this episode: it is over'),
  });
  await client.close();
  expect(episode.tools!.calls.map(({ observation }) => observation.error)).toEqual([
    undefined,
    'invalid-arguments',
    'unknown-tool',
  ]);
});

test('an agent that is started over gets what its calls brought, and goes on from there', async () => {
  const first = await open('over');
  for (const thing of ['cup', 'cup', 'lid']) await post(first, 'pack', { thing });
  await post(first, 'send', { to: 'A' });
  await first.close();
  const second = await open('over');
  const texts: unknown[] = [];
  for (const thing of ['cup', 'cup', 'lid']) texts.push((await post(second, 'pack', { thing })).body['text']);
  texts.push((await post(second, 'send', { to: 'A' })).body['text']);
  texts.push((await post(second, 'pack', { thing: 'cup' })).body['text']);
  expect(texts).toEqual(['1 packed', '2 packed', '3 packed', 'sent to A', '4 packed']);
  expect(await sent()).toHaveLength(1);
  const episode = { status: { kind: 'answered', answer: 'done' } } as unknown as Episode;
  const { signal } = new AbortController();
  const whole = await withCalls(about('over'), second.tools!, { task: {} as never, episode }, signal);
  expect(whole.episode.session).toEqual({ state: { packed: ['cup', 'cup', 'lid', 'cup'] }, ended: {} });
  expect(whole.episode.calls).toHaveLength(5);
});

test('a loop of the project is given them, and calls them', async () => {
  const loop = defineAgentLoop({
    name: 'packer',
    options: z.strictObject({}),
    episode: async ({ task, turn, tools, call }) => {
      await turn([{ role: 'user', content: task }], tools);
      await call('pack', { thing: tools[0]!.name });
      return call('pack', { thing: 'lid' });
    },
  });
  const { signal } = new AbortController();
  const episode = await open('loop');
  const asked = { loop, options: {}, task: 'Pack.', timeoutSeconds: 60, signal };
  const { status } = await runLoop(gateway, episode, asked);
  expect(status).toEqual({ kind: 'answered', answer: '2 packed' });
  expect(episode.tools!.calls.map(({ call }) => call.arguments)).toEqual([
    { thing: 'pack' },
    { thing: 'lid' },
  ]);
});

test('one that goes on in another process makes further calls, and none again', async () => {
  const first = await open('on');
  await post(first, 'pack', { thing: 'cup' });
  await first.close();
  const second = await open('on', { startsOver: false });
  expect((await post(second, 'pack', { thing: 'cup' })).body['text']).toBe('2 packed');
});

test('one that is started over and calls something else has failed, because a session takes nothing back', async () => {
  const first = await open('other');
  await post(first, 'pack', { thing: 'cup' });
  await first.close();
  const second = await open('other');
  const why = 'started over, it called pack where it had called something else before';
  expect(await post(second, 'pack', { thing: 'lid' })).toMatchObject(refused(409, 'episode_failed', why));
  expect(second.tools!.broken).toMatchObject({ boundary: 'environment' });
  expect(await post(second, 'pack', { thing: 'cup' })).toMatchObject({ status: 200 });
  expect(await post(second, 'send', { to: 'A' })).toMatchObject(refused(409, 'episode_failed', why));
  expect(second.ended).toBe('closed');
});

test('a call whose connection was lost, and one with the same Idempotency-Key, is not made again', async () => {
  const episode = await open('lost');
  await writeFile(`${letters}.hold`, '');
  const gone = new AbortController();
  const lost = post(episode, 'send', { to: 'A' }, {}, gone.signal).catch((error: Error) => error.name);
  await until(
    async () => (await sent()).length > 0 || undefined,
    300_000,
    () => 'no letter was begun',
  );
  gone.abort();
  expect(await lost).toBe('AbortError');
  await rm(`${letters}.hold`);
  const again = await until(
    async () => {
      const { body } = await post(episode, 'send', { to: 'A' });
      return body['text'] === 'sent to A' ? body : undefined;
    },
    300_000,
    () => 'the letter was not sent',
  );
  expect(again).toMatchObject({ error: null });
  expect(await sent()).toHaveLength(1);
  const key = { 'idempotency-key': 'one' };
  for (let i = 0; i < 2; i++) expect((await post(episode, 'send', { to: 'B' }, key)).status).toBe(200);
  expect(await sent()).toHaveLength(2);
  expect(await post(episode, 'send', { to: 'C' }, key)).toMatchObject(
    refused(400, 'idempotency_key_reused', 'another call'),
  );
});

test('calls beyond their number and size, and those of an episode without tools, are refused by name', async () => {
  const episode = await open('bounded', { mostCalls: 1 });
  expect(await post(episode, 'pack', { thing: 'x'.repeat(2 ** 20) })).toMatchObject(
    refused(413, 'arguments_too_large', 'may have 1048576 bytes'),
  );
  await post(episode, 'pack', { thing: 'cup' });
  expect(await post(episode, 'pack', { thing: 'cup' })).toMatchObject(
    refused(409, 'too_many_calls', 'raise agent.environmentTools.maxCalls'),
  );
  const bare = await gateway.open(episodeOptions(policy, store, 'bare'));
  expect(gateway.variablesFor(bare)).not.toHaveProperty('GRADUS_TOOLS_URL');
  const response = await fetch(`${gateway.url}/episodes/bare/tools/pack`, { method: 'POST', body: '{}' });
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({ error: { code: 'no_tools' } });
  expect((await fetch(`${gateway.url}/episodes/nobody/tools`)).status).toBe(404);
});
