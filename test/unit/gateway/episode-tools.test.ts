import { expect, test } from 'vitest';
import { offeredTools, withCalls } from '../../../activities/rollout/agents/environment-tools.ts';
import type { AgentTools } from '../../../activities/rollout/agents/environment-tools.ts';
import type { Episode, ToolCall } from '../../../core/episode/episode.ts';
import { DIED } from '../../../environments/host/asks.ts';
import { environmentFactsOf } from '../../../environments/host/facts.ts';
import { hostedHere, HostedEnvironment } from '../../../environments/host/hosted-environment.ts';
import { EpisodeTools } from '../../../gateway/episode-tools.ts';
import type { EpisodeToolsOptions, OfferedTools } from '../../../gateway/episode-tools.ts';
import { defineEnvironment, defineTool, sessionTool, z } from '../../../index.ts';

// What a hostile agent, or two processes with one episode, may do with the tools of an environment.

type Store = EpisodeToolsOptions['store'];

/** Objects in memory, as bytes, each written once. */
function memory(objects = new Map<string, Uint8Array>()): Store {
  return {
    async find(key, codec) {
      const bytes = objects.get(key);
      return bytes ? codec.decode(bytes, key) : null;
    },
    async putIfAbsent(key, codec, value) {
      const given = await codec.encode(value);
      const bytes = objects.get(key) ?? given;
      objects.set(key, bytes);
      return { ref: { key, sha256: '', bytes: bytes.length }, value: codec.decode(bytes, key) };
    },
    async listFolder(folder) {
      return { keys: [...objects.keys()].filter((key) => key.startsWith(folder)), folders: [] };
    },
  };
}

/** Letters that were really sent; each waits for `hold`. */
function depot(hold: () => Promise<unknown> = () => Promise.resolve()) {
  const sent: string[] = [];
  const letter = (name: string, effect: 'pure' | 'once') =>
    defineTool({
      name,
      description: 'Sends a letter.',
      arguments: z.strictObject({ to: z.string() }),
      placement: 'long',
      effect,
      cost: { seconds: 0, usd: 0 },
      run: async ({ to }) => {
        sent.push(to);
        await hold();
        return `sent to ${to}`;
      },
    });
  const defined = defineEnvironment({
    name: 'depot',
    levels: [1],
    tools: [
      sessionTool({
        name: 'pack',
        description: 'Packs a thing.',
        arguments: z.strictObject({ thing: z.string() }),
      }),
      letter('send', 'once'),
      letter('look', 'pure'),
    ],
    verifiers: [],
    sessions: {
      resume: 'fold',
      open: (): string[] => [],
      act: (packed: string[], { arguments: given }) => {
        const { thing } = given as { thing: string };
        return { state: [...packed, thing], did: `${packed.length + 1} packed` };
      },
    },
    task: (ref) => ({ ref, prompt: 'Pack.' }),
    taskCount: () => 1,
  });
  const environment = hostedHere(defined);
  const about: AgentTools = {
    environment,
    ref: { environment: 'depot', split: 'train', level: 1, index: 0 },
    tools: environment.tools,
    episodeId: 'episode',
    mostCalls: 10,
    incident: undefined,
    putImages: (called) => Promise.resolve(called),
  };
  return { sent, about, defined };
}

const opened = (about: AgentTools, store: Store, more: Partial<EpisodeToolsOptions> = {}) =>
  EpisodeTools.open(offeredTools(about), {
    store,
    folder: 'agent',
    startsOver: true,
    onBroken: () => undefined,
    ...more,
  });

/** The episode of an agent that has answered. */
async function answered(about: AgentTools, tools: EpisodeTools): Promise<Episode> {
  const episode = { status: { kind: 'answered', answer: 'done' } } as unknown as Episode;
  const { signal } = new AbortController();
  return (await withCalls(about, tools, { task: {} as never, episode }, signal)).episode;
}

/** Tools of an environment without sessions. */
const withoutSession = (make: OfferedTools['make']): OfferedTools => ({
  described: [],
  episode: 'episode',
  inSession: false,
  mostCalls: 10,
  isOnce: () => false,
  make,
});

const connected = (idempotencyKey?: string) => ({ idempotencyKey, gone: new AbortController().signal });
const pack = (thing: string): ToolCall => ({ name: 'pack', arguments: { thing } });
const letterTo = (to: string, name = 'send'): ToolCall => ({ name, arguments: { to } });

test('two processes that begin the same call do not both make it, where it must be made once only', async () => {
  let go = (): void => undefined;
  const held = new Promise<void>((resolve) => (go = resolve));
  const { sent, about } = depot(() => held);
  const store = memory();
  const [one, other, later] = [
    await opened(about, store),
    await opened(about, store),
    await opened(about, store),
  ];
  const first = one.take(letterTo('A'), connected());
  await expect(other.take(letterTo('A'), connected())).rejects.toMatchObject({ code: 'episode_failed' });
  expect(other.broken).toMatchObject({ boundary: 'infra' });
  go();
  const brought = await first;
  // What has come meanwhile is known.
  expect(await later.take(letterTo('A'), connected())).toEqual(brought);
  expect(later.broken).toBeUndefined();
  expect(sent).toEqual(['A']);
});

test('an agent that outlived its worker and the one that was started over have no key of a call in common', async () => {
  const store = memory();
  const known = new Map<string, Set<string>>();
  // A tool that knows a call by its key gives an equal key the same answer.
  const offered = withoutSession(async (call, { key }) => {
    const { to } = call.arguments as { to: string };
    known.set(key, (known.get(key) ?? new Set()).add(to));
    return async () => ({ observation: { text: `about ${[...known.get(key)!][0]}` } });
  });
  const open = () =>
    EpisodeTools.open(offered, { store, folder: 'agent', startsOver: true, onBroken: () => undefined });
  const [old, now] = [await open(), await open()];
  const text = async (tools: EpisodeTools, to: string, key?: string) =>
    (await tools.take(letterTo(to, 'look'), connected(key))).observation.text;
  // They go different ways, one call after the other and at the same time.
  expect(await text(old, 'A')).toBe('about A');
  expect(await text(now, 'B')).toBe('about B');
  expect(await Promise.all([text(old, 'C'), text(now, 'D'), text(old, 'E'), text(now, 'F')])).toEqual([
    'about C',
    'about D',
    'about E',
    'about F',
  ]);
  expect([...known.values()].map(({ size }) => size)).toEqual([1, 1, 1, 1, 1, 1]);
  // An equal call is one, whoever makes it.
  expect(await text(now, 'A')).toBe('about A');
  expect(known.size).toBe(6);
  // Under the agent's own key no call gets what another one brought.
  expect(await text(old, 'G', 'mine')).toBe('about G');
  await expect(text(now, 'H', 'mine')).rejects.toMatchObject({ code: 'idempotency_key_reused' });
});

test('a key that was used with another call is refused while that call waits for its turn', async () => {
  let go = (): void => undefined;
  const held = new Promise<void>((resolve) => (go = resolve));
  const { about } = depot(() => held);
  const tools = await opened(about, memory());
  const first = tools.take(letterTo('A'), connected());
  const keyed = tools.take(pack('cup'), connected('key'));
  await expect(tools.take(pack('lid'), connected('key'))).rejects.toMatchObject({
    code: 'idempotency_key_reused',
  });
  go();
  await first;
  expect((await keyed).call).toEqual(pack('cup'));
});

test('a call whose client had gone before it was looked at is not made again', async () => {
  const { about } = depot();
  const tools = await opened(about, memory());
  const before = await tools.take(pack('cup'), { gone: AbortSignal.abort() });
  expect(await tools.take(pack('cup'), connected())).toBe(before);
});

test('a call under a key that was lost is asked for by its key, and an equal one without is another', async () => {
  const { about } = depot();
  const tools = await opened(about, memory());
  const gone = new AbortController();
  await tools.take(pack('cup'), { idempotencyKey: 'key', gone: gone.signal });
  gone.abort();
  expect((await tools.take(pack('cup'), connected('key'))).observation.text).toBe('1 packed');
  expect((await tools.take(pack('cup'), connected())).observation.text).toBe('2 packed');
});

test('the name of a call has no more room than its arguments', async () => {
  const { about } = depot();
  const tools = await opened(about, memory());
  const long = { name: 'x'.repeat(2 ** 20), arguments: {} };
  await expect(tools.take(long, connected())).rejects.toMatchObject({ status: 413 });
  const other = { name: '__proto__', arguments: {} };
  expect((await tools.take(other, connected())).observation.error).toBe('unknown-tool');
});

test('all calls of an episode have a bound together, also where it is started over', async () => {
  const { about } = depot();
  const store = memory();
  const tools = await opened({ ...about, mostCalls: 100 }, store);
  const large = (n: number): ToolCall => ({ name: `${n}`.padEnd(1_040_000, 'x'), arguments: {} });
  for (let n = 0; n < 16; n++) await tools.take(large(n), connected());
  await expect(tools.take(large(16), connected())).rejects.toMatchObject({ status: 413 });
  const over = await opened({ ...about, mostCalls: 100 }, store, { startsOver: false });
  await expect(over.take(large(16), connected())).rejects.toMatchObject({ status: 413 });
  expect(over.calls).toHaveLength(16);
});

test('a store that is away while images are put breaks no call: the whole attempt fails', async () => {
  const { about } = depot();
  const failures: unknown[] = [];
  const away = new Error('the store is away');
  const tools = await opened({ ...about, putImages: () => Promise.reject(away) }, memory(), {
    onFailure: (error) => failures.push(error),
  });
  await expect(tools.take(pack('cup'), connected())).rejects.toBe(away);
  expect(failures).toEqual([away]);
  expect(tools.broken).toBeUndefined();
});

test('that a process died over a call is told by who saw it', async () => {
  const { about, defined } = depot();
  const died = { boundary: 'tool' as const, type: DIED, message: 'died', retryable: false };
  const environment = new HostedEnvironment(environmentFactsOf(defined, 'a file'), {
    ask: () => Promise.resolve([{ error: died }]),
  });
  const incidents: unknown[] = [];
  const incident = (one: unknown): void => void incidents.push(one);
  const tools = await opened({ ...about, environment, incident }, memory());
  await expect(tools.take(pack('cup'), connected())).rejects.toMatchObject({ code: 'episode_failed' });
  expect(tools.broken).toEqual({ boundary: 'tool', reason: 'died' });
  expect(incidents).toEqual([]);
});

test.each([
  ['send', 'failed'],
  ['look', 'answered'],
])('an agent that ends in the middle of its call of %s has an episode that has %s', async (name, kind) => {
  let reached = (): void => undefined;
  const begun = new Promise<void>((resolve) => (reached = resolve));
  const { sent, about } = depot(() => {
    reached();
    return new Promise(() => undefined);
  });
  const tools = await opened(about, memory());
  const cut = tools.take(letterTo('A', name), connected());
  await begun;
  await Promise.all([tools.close(), expect(cut).rejects.toMatchObject({ code: 'episode_ended' })]);
  expect(sent).toEqual(['A']);
  const episode = await answered(about, tools);
  expect(episode.calls).toBeUndefined();
  expect(episode.status.kind).toBe(kind);
});

test('one that is started over and leaves out a call of the session has failed', async () => {
  const { about } = depot();
  const store = memory();
  const first = await opened(about, store);
  for (const thing of ['cup', 'lid']) await first.take(pack(thing), connected());
  const second = await opened(about, store);
  await second.take(pack('cup'), connected());
  expect((await answered(about, second)).status).toMatchObject({
    kind: 'failed',
    reason: expect.stringContaining('it did not call pack as before') as string,
  });
  await second.take(pack('lid'), connected());
  expect((await answered(about, second)).status.kind).toBe('answered');
});

test('calls that were begun at the same time keep their numbers, though a kill has left one of them half begun', async () => {
  const objects = new Map<string, Uint8Array>();
  const store = memory(objects);
  const offered = withoutSession(() =>
    Promise.resolve(() => Promise.resolve({ observation: { text: 'looked' } })),
  );
  const options = { folder: 'agent', startsOver: true, onBroken: () => undefined };
  const cut: Store = {
    ...store,
    // Killed when the first one has its number and the second one is begun.
    putIfAbsent: async (key, codec, value) => {
      const isFirst = key.includes('/begun-calls/') && JSON.stringify(value).includes('to Ann');
      if (isFirst || key.includes('/calls/')) return new Promise<never>(() => undefined);
      return store.putIfAbsent(key, codec, value);
    },
  };
  const killed = await EpisodeTools.open(offered, { ...options, store: cut });
  const [first, second] = [letterTo('to Ann', 'look'), letterTo('to Bob', 'look')];
  void killed.take(first, connected());
  void killed.take(second, connected());
  await expect.poll(() => [...objects.keys()].filter((key) => key.includes('begun-calls'))).toHaveLength(1);
  await expect.poll(() => [...objects.keys()].filter((key) => key.includes('call-numbers'))).toHaveLength(2);

  const again = await EpisodeTools.open(offered, { ...options, store });
  await Promise.all([again.take(first, connected()), again.take(second, connected())]);
  expect(again.calls.map(({ nth, call }) => [nth, call])).toEqual([
    [1, first],
    [2, second],
  ]);
});

test('an agent that calls otherwise when it starts over has as many calls as any other', async () => {
  const store = memory();
  const offered = {
    ...withoutSession(async () => async () => ({ observation: { text: 'made' } })),
    mostCalls: 2,
  };
  const attempt = () =>
    EpisodeTools.open(offered, { store, folder: 'agent', startsOver: true, onBroken: () => undefined });
  const first = await attempt();
  for (const to of ['A', 'B']) await first.take(letterTo(to), connected());
  const second = await attempt();
  for (const to of ['C', 'A']) await second.take(letterTo(to), connected());
  await expect(second.take(letterTo('D'), connected())).rejects.toMatchObject({ code: 'too_many_calls' });
});

test('and as many bytes', async () => {
  const store = memory();
  const offered = withoutSession(async () => async () => ({ observation: { text: 'made' } }));
  const attempt = () =>
    EpisodeTools.open(
      { ...offered, mostCalls: 100 },
      { store, folder: 'agent', startsOver: true, onBroken: () => undefined },
    );
  const fill = async (tools: EpisodeTools, letter: string): Promise<void> => {
    for (let i = 0; i < 16; i++) await tools.take(letterTo(`${i}${letter.repeat(1e6)}`), connected());
    const one = tools.take(letterTo(letter.repeat(9e5)), connected());
    await expect(one).rejects.toMatchObject({ code: 'arguments_too_large' });
  };
  await fill(await attempt(), 'a');
  await fill(await attempt(), 'b');
});
