import { EventEmitter, once } from 'node:events';
import { spawn } from 'node:child_process';
import Anthropic from '@anthropic-ai/sdk';
import getPort from 'get-port';
import OpenAI from 'openai';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import type { Policy } from '../../../engine/policy.ts';
import { serveGateway } from '../../../gateway/server.ts';
import { turns } from '../../../gateway/stored-turn.ts';
import { rowOf } from '../../../gateway/turn-tree.ts';
import { episodeOptions, qwen, randomPolicy, speaksQwen } from '../../support/gateway.ts';
import { ScriptedPolicy } from '../../support/scripted-policy.ts';
import { openTestStore } from '../../support/test-store.ts';

// The SDKs of OpenAI and Anthropic as they come, against the gateway with a random model and a real store.

const { server, store } = await openTestStore();
const policy = await randomPolicy();
const gateway = await serveGateway({ keepAliveMs: 20 });
afterAll(async () => {
  await gateway.close();
  await policy.close();
});

let opened = 0;
async function begin(more: Parameters<typeof episodeOptions>[3] = {}, by = policy as typeof more.policy) {
  const id = `episode-${opened++}`;
  const episode = await gateway.open(episodeOptions(by!, store, id, more));
  const found = gateway.variablesFor(episode);
  const openai = (options: ConstructorParameters<typeof OpenAI>[0] = {}) =>
    new OpenAI({ baseURL: found['OPENAI_BASE_URL'], apiKey: 'whatever', ...options });
  const anthropic = new Anthropic({
    baseURL: found['ANTHROPIC_BASE_URL'],
    apiKey: found['ANTHROPIC_API_KEY'],
  });
  return { id, episode, openai, anthropic };
}

const user = (content: string) => ({ role: 'user' as const, content });
const model = 'policy';
const add = {
  name: 'add',
  description: 'Adds numbers',
  parameters: { type: 'object', properties: { a: { type: 'number' } } },
};
const says = (...texts: string[]) =>
  new ScriptedPolicy(texts.map((text) => ({ tokens: [...qwen.encodePlain(text), qwen.idOf('<|im_end|>')] })));
const calls = (...values: number[]): string =>
  values
    .map((a) => `<tool_call>\n${JSON.stringify({ name: 'add', arguments: { a } })}\n</tool_call>`)
    .join('\n');

test('a conversation goes on by tokens, and one that was rewritten begins a branch', async () => {
  const { episode, openai } = await begin();
  const client = openai();
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: 'developer', content: 'Be brief.' },
    user('1 + 1'),
  ];
  for (let turn = 0; turn < 3; turn++) {
    const answer = await client.chat.completions.create({ model, messages, temperature: 0, logprobs: true });
    const logprobs = answer.choices[0]!.logprobs!.content!;
    expect(logprobs).toHaveLength(answer.usage!.completion_tokens);
    messages.push(answer.choices[0]!.message, user(`and ${turn}`));
  }
  const [row, ...others] = episode.rows();
  expect(others).toEqual([]);
  const path = [...episode.tree.pathOf(last(episode))];
  expect(path).toHaveLength(3);
  expect(row).toEqual(rowOf(path));
  expect(row!.tokens.filter((_, i) => row!.mask[i] === 1)).toEqual(path.flatMap(({ tokens }) => tokens));
  // What a policy without any cache would have sampled from these very tokens.
  expect(path[1]!.observed.length).toBeLessThan(path[0]!.observed.length + 40);

  messages.splice(2, 1, { role: 'assistant', content: 'two' });
  await client.chat.completions.create({ model, messages });
  expect(episode.rows()).toHaveLength(2);
});

test('streams say what answers say, in all three APIs', async () => {
  const { episode, openai, anthropic } = await begin();
  const client = openai();
  const chat = await client.chat.completions
    .stream({ model, messages: [user('a')], stream_options: { include_usage: true } })
    .finalChatCompletion();
  expect(chat.choices[0]!.message.content).toBe(last(episode).answer.content);
  expect(chat.usage!.completion_tokens).toBe(last(episode).tokens.length);

  const response = await client.responses.stream({ model, input: 'b' }).finalResponse();
  expect(response.output_text).toBe(last(episode).answer.content);
  const next = await client.responses.create({ model, input: 'c', previous_response_id: response.id });
  expect(episode.tree.pathOf(last(episode))).toHaveLength(2);
  expect(next.output_text).toBe(last(episode).answer.content);

  const asked = { model, max_tokens: 3000, messages: [user('d')] };
  const message = await anthropic.messages.stream(asked).finalMessage();
  expect(textOf(message)).toBe(last(episode).answer.content);
  const counted = await anthropic.messages.countTokens(asked);
  expect(counted.input_tokens).toBe(message.usage.input_tokens);
  const again = await anthropic.messages.create({
    ...asked,
    messages: [...asked.messages, message, user('e')],
  });
  expect(textOf(again)).toBe(last(episode).answer.content);
  expect(episode.tree.pathOf(last(episode))).toHaveLength(2);
});

test('several calls in a turn, and their results, in Chat Completions', async () => {
  const { episode, openai } = await begin(speaksQwen, says(`Both.\n${calls(1, 2)}`, 'Three.'));
  const messages: OpenAI.ChatCompletionMessageParam[] = [user('1 and 2')];
  const asked = { model, tools: [{ type: 'function' as const, function: add }], parallel_tool_calls: true };
  const answer = await openai().chat.completions.create({ ...asked, messages });
  expect(answer.choices[0]!.finish_reason).toBe('tool_calls');
  const { message } = answer.choices[0]!;
  expect(message.content).toBe('Both.');
  const made = message.tool_calls!.flatMap((call) => (call.type === 'function' ? [call] : []));
  expect(made.map((call) => call.function)).toEqual([
    { name: 'add', arguments: '{"a":1}' },
    { name: 'add', arguments: '{"a":2}' },
  ]);
  const result = (id: string, content: string) => ({ role: 'tool' as const, tool_call_id: id, content });
  const strange = openai().chat.completions.create({
    ...asked,
    messages: [...messages, message, result('call_of_another', 'is 0')],
  });
  await expect(strange).rejects.toMatchObject({
    status: 400,
    type: 'invalid_request_error',
    message: expect.stringMatching(/the call "call_of_another", and the turn before it has made/) as string,
  });
  // Whatever order they are sent in: each is told as the result of its call.
  messages.push(message, ...made.map(({ id }, i) => result(id, `is ${i}`)).toReversed());
  const done = await openai()
    .chat.completions.stream({ ...asked, messages })
    .finalChatCompletion();
  expect(done.choices[0]!.message.content).toBe('Three.');
  const { observed } = last(episode);
  expect(episode.rows()).toHaveLength(1);
  expect(qwen.decode(observed)).toBe(
    '\n<|im_start|>user\n<tool_response>\nis 0\n</tool_response>\n<tool_response>\nis 1\n</tool_response><|im_end|>\n<|im_start|>assistant\n',
  );
});

test('calls and results in Responses and in Messages', async () => {
  const texts = [calls(4), 'Four.'];
  const one = await begin(speaksQwen, says(...texts));
  const tools = [{ type: 'function' as const, strict: false, ...add }];
  const first = await one.openai().responses.stream({ model, input: 'x', tools }).finalResponse();
  const call = first.output.find((item) => item.type === 'function_call')!;
  expect(call.arguments).toBe('{"a":4}');
  const input = [
    user('x'),
    ...first.output,
    { type: 'function_call_output' as const, call_id: call.call_id, output: '4' },
  ] as OpenAI.Responses.ResponseInput;
  expect((await one.openai().responses.create({ model, input, tools })).output_text).toBe('Four.');
  expect(one.episode.rows()).toHaveLength(1);
  const unasked = { type: 'function_call_output' as const, call_id: 'call_of_another', output: '4' };
  await expect(
    one.openai().responses.create({ model, input: [unasked], tools, previous_response_id: first.id }),
  ).rejects.toMatchObject({ status: 400, code: 'invalid_request' });
  const named = first.output.map(({ id }) => ({ type: 'item_reference' as const, id: id! }));
  const byName = [user('x'), ...named, input.at(-1)!];
  await one.openai().responses.create({ model, input: byName, tools });
  expect(one.episode.tree.pathOf(last(one.episode)).map(({ id }) => `resp_${id}`)[0]).toBe(first.id);
  const stranger = [user('x'), { type: 'item_reference' as const, id: `fc_${'0'.repeat(32)}0` }];
  await expect(one.openai().responses.create({ model, input: stranger, tools })).rejects.toMatchObject({
    status: 404,
    code: 'item_not_found',
  });

  const two = await begin(speaksQwen, says(...texts));
  const asked = {
    model,
    max_tokens: 3000,
    tools: [{ name: 'add', description: add.description, input_schema: { type: 'object' as const } }],
  };
  const message = await two.anthropic.messages.stream({ ...asked, messages: [user('x')] }).finalMessage();
  expect(message.stop_reason).toBe('tool_use');
  const use = message.content.find((block) => block.type === 'tool_use')!;
  expect(use.input).toEqual({ a: 4 });
  const unused = [{ type: 'tool_result' as const, tool_use_id: 'toolu_of_another', content: '4' }];
  await expect(
    two.anthropic.messages.create({
      ...asked,
      messages: [
        user('x'),
        { role: 'assistant', content: message.content },
        { role: 'user', content: unused },
      ],
    }),
  ).rejects.toMatchObject({ status: 400, error: { error: { type: 'invalid_request_error' } } });
  const answer = await two.anthropic.messages.create({
    ...asked,
    messages: [
      user('x'),
      { role: 'assistant', content: message.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: '4' }] },
    ],
  });
  expect(textOf(answer)).toBe('Four.');
  expect(two.episode.rows()).toHaveLength(1);
});

test('an answer that was lost on its way is given again, and equal requests are other samples', async () => {
  const { episode, openai } = await begin();
  let attempts = 0;
  const losing: typeof fetch = async (...args) => {
    const response = await fetch(...args);
    await response.clone().arrayBuffer();
    if (attempts++ === 0) throw new TypeError('the connection was lost');
    return response;
  };
  const asked = { model, messages: [user('again')] };
  const answer = await openai({ fetch: losing }).chat.completions.create(asked);
  expect(attempts).toBe(2);
  expect(episode.tree.size).toBe(1);

  const others = await Promise.all([1, 2].map(() => openai().chat.completions.create(asked)));
  expect(new Set([answer, ...others].map(({ id }) => id)).size).toBe(3);
  expect(episode.rows()).toHaveLength(3);

  const idempotencyKey = 'one';
  const keyed = await Promise.all(
    [1, 2].map(() =>
      openai().chat.completions.create(asked, {
        idempotencyKey,
        headers: { 'Idempotency-Key': idempotencyKey },
      }),
    ),
  );
  expect(keyed[0]!.id).toBe(keyed[1]!.id);
  await expect(
    openai().chat.completions.create(
      { model, messages: [user('something else')] },
      { headers: { 'Idempotency-Key': idempotencyKey } },
    ),
  ).rejects.toThrow(/another body/);
});

/** A policy that begins when it is told to. */
function waiting() {
  const events = new EventEmitter();
  const begun = once(events, 'begun');
  const mayGoOn = once(events, 'go on');
  const by: Policy = {
    async sample(request, signal) {
      events.emit('begun');
      await mayGoOn;
      return policy.sample(request, signal);
    },
    release: (session) => policy.release(session),
    close: () => Promise.resolve(),
  };
  return { by, begun, goOn: () => events.emit('go on') };
}

test('who was cut off while a turn was sampled gets that turn, without saying that it is a retry', async () => {
  const { by, begun, goOn } = waiting();
  const { episode, openai } = await begin({}, by);
  const asked = { model, messages: [user('cut off')] };
  const off = new AbortController();
  const first = openai().chat.completions.create(asked, { signal: off.signal });
  await begun;
  off.abort();
  await expect(first).rejects.toThrow('aborted');
  await vi.waitFor(() => expect(episode.untold).toBe(1), { timeout: 120_000 });
  const again = openai().chat.completions.create(asked);
  await Promise.all([
    again,
    vi.waitFor(() => expect(episode.untold).toBe(0), { timeout: 120_000 }).then(goOn),
  ]);
  expect(episode.tree.size).toBe(1);
});

test('a turn whose client went before it was told, and that nobody asked for again, is not trained', async () => {
  for (const headers of [{}, { 'Idempotency-Key': 'once' }]) {
    const { by, begun, goOn } = waiting();
    const { episode, openai } = await begin({}, by);
    const off = new AbortController();
    const asked = { model, messages: [user('went')] };
    const first = openai({ maxRetries: 0 }).chat.completions.create(asked, { signal: off.signal, headers });
    await begun;
    off.abort();
    await expect(first).rejects.toThrow('aborted');
    await vi.waitFor(() => expect(episode.untold).toBe(1), { timeout: 120_000 });
    goOn();
    await vi.waitFor(() => expect(episode.tree.size).toBe(1), { timeout: 120_000 });
    expect(episode.rows()).toEqual([]);
    await openai().chat.completions.create(asked, { headers });
    expect([episode.tree.size, episode.rows().length]).toEqual([1, 1]);
  }
});

test('a turn that a server has sampled says which one, and with which weights', async () => {
  const served = { server: 'http://127.0.0.1:1', weights: 'a'.repeat(64) };
  const by = says('Yes.');
  const sample = by.sample.bind(by);
  by.sample = async (...asked) => ({ ...(await sample(...asked)), served });
  const { id, episode, openai } = await begin(speaksQwen, by);
  await openai().chat.completions.create({ model, messages: [user('a')] });
  const key = `agents/${id}/turns/${last(episode).id}.json`;
  expect((await store.find(key, turns))!.served).toEqual(served);
});

test('a reward that cannot be stored ends the attempt, and not the agent', async () => {
  const failures: unknown[] = [];
  const away = new Error('the store is away');
  const broken = Object.create(store, {
    putIfAbsent: { value: () => Promise.reject(away) },
  }) as typeof store;
  const { id } = await begin({ store: broken, onFailure: (error) => failures.push(error) });
  const put = { method: 'POST', body: JSON.stringify({ reward: 1 }) };
  const { status } = await fetch(`${gateway.url}/episodes/${id}/reward`, put);
  expect([status, failures]).toEqual([expect.toSatisfy((one: number) => one >= 500), [away]]);
});

test('a stream is kept alive while its turn is sampled', async () => {
  for (const [path, alive] of [
    ['chat/completions', ': sampling'],
    ['messages', 'event: ping'],
  ] as const) {
    const { by, goOn } = waiting();
    const { id } = await begin({}, by);
    const response = await fetch(`${gateway.url}/episodes/${id}/v1/${path}`, {
      method: 'POST',
      body: JSON.stringify({ model, stream: true, messages: [user(path)] }),
    });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toContain(alive);
    goOn();
    while (!(await reader.read()).done);
  }
});

test('what cannot be done is refused in the words of the API that was called', async () => {
  const { id, episode, openai, anthropic } = await begin();
  const client = openai({ maxRetries: 0 });
  const messages = [user('a')];
  await expect(client.chat.completions.create({ model, messages, n: 2 })).rejects.toMatchObject({
    status: 400,
    param: 'n',
  });
  await expect(client.chat.completions.create({ model: 'gpt', messages })).rejects.toMatchObject({
    status: 404,
    code: 'model_not_found',
  });
  await expect(anthropic.messages.create({ model: 'claude', max_tokens: 9, messages })).rejects.toMatchObject(
    {
      status: 404,
      error: { type: 'error', error: { type: 'not_found_error' } },
    },
  );
  const byKey = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: `gradus-${id}` });
  expect((await byKey.models.list()).data.map(({ id }) => id)).toEqual([model]);
  const nobody = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'gradus-nobody', maxRetries: 0 });
  await expect(nobody.models.list()).rejects.toMatchObject({ status: 404, code: 'episode_not_found' });
  const none = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'sk-x', maxRetries: 0 });
  await expect(none.models.list()).rejects.toMatchObject({ status: 401 });

  const { data, response } = await client.chat.completions
    .create({ model, messages, temperature: 0 })
    .withResponse();
  expect(response.headers.get('x-gradus-sampling')).toBe('temperature=1; top_k=0; top_p=1');
  const post = (reward: number) =>
    fetch(`${gateway.url}/episodes/${id}/reward`, { method: 'POST', body: JSON.stringify({ reward }) });
  expect((await post(0.5)).status).toBe(200);
  expect((await post(1)).status).toBe(409);
  await episode.close();
  await expect(client.chat.completions.create({ model, messages: [user('b')] })).rejects.toMatchObject({
    status: 409,
    code: 'episode_ended',
  });
  expect(data.object).toBe('chat.completion');
});

test('a gateway that was killed gives again what it had given, and another sample to who asks anew', async () => {
  const port = await getPort();
  const asked = { model, messages: [user('killed')] };
  const client = new OpenAI({
    baseURL: `http://127.0.0.1:${port}/v1`,
    apiKey: 'gradus-killed',
    maxRetries: 0,
  });
  const headers = { 'Idempotency-Key': 'first' };
  const before = await serving(port, 'killed');
  const first = await client.chat.completions.create(asked, { headers });
  const second = await client.chat.completions.create(asked);
  await before.kill();
  const after = await serving(port, 'killed');
  expect(await client.chat.completions.create(asked, { headers })).toEqual(first);
  const retry = { headers: { 'x-stainless-retry-count': '1' } };
  expect(await client.chat.completions.create(asked, retry)).toEqual(second);
  const third = await client.chat.completions.create(asked);
  expect([first.id, second.id]).not.toContain(third.id);
  await after.kill();
});

async function serving(port: number, id: string) {
  const module = new URL('serve.ts', import.meta.url).pathname;
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', module, String(port), id, JSON.stringify(server.options())],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  onTestFinished(kill);
  await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'exit').then(() => {
      throw new Error('the gateway ended before it was ready');
    }),
  ]);
  return { kill };
}

/** The turn that was taken last. */
function last({ tree }: Awaited<ReturnType<typeof begin>>['episode']) {
  return tree.all.at(-1)!;
}

const textOf = ({ content }: Anthropic.Message): string =>
  content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('');
