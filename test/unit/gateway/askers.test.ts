import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { AgentEpisode } from '../../../gateway/agent-episode.ts';
import type { AgentEpisodeOptions, Sent } from '../../../gateway/agent-episode.ts';
import type { Problem } from '../../../gateway/problem.ts';
import type { ObjectStore } from '../../../store/objects/object-store.ts';
import { episodeOptions } from '../../support/gateway.ts';

// Who has been told a turn, and who has the last one, where requests are hedged, sent again, or found slowly.

/** A store in memory, which finds a key when `found` says so. */
function inMemory(found: (key: string) => Promise<unknown> = () => Promise.resolve()): ObjectStore {
  const kept = new Map<string, unknown>();
  return {
    find: async (key: string) => {
      await found(key);
      return kept.get(key) ?? null;
    },
    putIfAbsent: async (key: string, _: unknown, value: unknown) => {
      if (!kept.has(key)) kept.set(key, value);
      return { ref: { key }, value: kept.get(key) };
    },
    listFolder: async (folder: string) => ({
      keys: [...kept.keys()].filter((key) => key.startsWith(folder)),
    }),
  } as unknown as ObjectStore;
}
const keysAfter = (ms: () => number) => inMemory((key) => delay(key.includes('/keys/') ? ms() : 0));

function open(
  id: string,
  more: Partial<AgentEpisodeOptions> = {},
  sampled: Promise<unknown> = Promise.resolve(),
) {
  const policy: AgentEpisodeOptions['policy'] = {
    sample: async (request) => {
      await sampled;
      return { tokens: [request.stopTokens[0]!], samplerLogprobs: [-1], finish: 'stop' };
    },
    release: () => undefined,
    close: () => Promise.resolve(),
  };
  return AgentEpisode.open(episodeOptions(policy, inMemory(), id, { startsOver: true, ...more }));
}

const ask = (content: string) => ({
  model: 'policy',
  messages: [{ role: 'user' as const, content }],
  tools: [],
  stream: false,
});
const sent = (more: Partial<Sent> = {}): Sent => ({
  body: 'body',
  idempotencyKey: undefined,
  isRetry: false,
  gone: new AbortController().signal,
  over: Promise.resolve(),
  ...more,
});
const statusOf = (taken: Promise<unknown>): Promise<number> =>
  taken.then(
    () => 200,
    (error: unknown) => (error as Problem).status,
  );

/** Opens when it is called. */
function gate(): [Promise<void>, () => void] {
  let go!: () => void;
  const opened = new Promise<void>((resolve) => (go = resolve));
  return [opened, go];
}

test.each([
  ['with a key', { idempotencyKey: 'key' }, { idempotencyKey: 'key' }],
  ['again before its loss is seen', {}, { isRetry: true }],
])('a turn that is asked for twice at once, %s, is told where one client stays', async (name, one, other) => {
  const [sampled, go] = gate();
  const episode = await open(`hedged-${name.length}`, {}, sampled);
  const gone = new AbortController();
  const first = episode.take(ask('hi'), sent({ ...one, gone: gone.signal }));
  const second = episode.take(ask('hi'), sent(other));
  await delay(20);
  gone.abort();
  go();
  expect((await second).id).toBe((await first).id);
  expect(episode.untold).toBe(0);
  expect(episode.rows()).toHaveLength(1);
  // Whoever asks the same anew asks for another turn.
  expect((await episode.take(ask('hi'), sent())).id).not.toBe((await first).id);
});

test('a turn whose askers have all gone is not learned from, and is had by who asks next', async () => {
  const [sampled, go] = gate();
  const episode = await open('all-gone', {}, sampled);
  const gone = [new AbortController(), new AbortController()];
  const taken = [
    episode.take(ask('hi'), sent({ gone: gone[0]!.signal })),
    episode.take(ask('hi'), sent({ gone: gone[1]!.signal, isRetry: true })),
  ];
  await delay(20);
  for (const one of gone) one.abort();
  go();
  const ids = (await Promise.all(taken)).map(({ id }) => id);
  expect(new Set(ids).size).toBe(1);
  expect(episode.untold).toBe(1);
  expect(episode.rows()).toEqual([]);
  expect((await episode.take(ask('hi'), sent())).id).toBe(ids[0]);
  expect(episode.untold).toBe(0);
});

test('a request that is sent again while its key is looked for is told', async () => {
  const [found, go] = gate();
  const episode = await open('claim', {
    store: inMemory((key) => (key.includes('/keys/') ? found : Promise.resolve())),
  });
  const gone = new AbortController();
  const first = episode.take(ask('hi'), sent({ idempotencyKey: 'key', gone: gone.signal }));
  await delay(20);
  gone.abort();
  const second = episode.take(ask('hi'), sent({ idempotencyKey: 'key' }));
  go();
  await Promise.all([first, second]);
  expect(episode.untold).toBe(0);
  expect(episode.rows()).toHaveLength(1);
});

test('a key that is used for another body tells nobody', async () => {
  const episode = await open('reused');
  await episode.take(ask('hi'), sent({ idempotencyKey: 'key', gone: AbortSignal.abort() }));
  const other = episode.take(ask('other'), sent({ idempotencyKey: 'key', body: 'other' }));
  await expect(other).rejects.toThrow('another body');
  expect(episode.untold).toBe(1);
  expect(episode.rows()).toEqual([]);
});

test.each([0, 100])('a request with a key keeps the last turn where keys take %d ms', async (ms) => {
  const store = keysAfter(() => ms);
  const { sampling } = episodeOptions({} as never, store, 'any');
  const episode = await open('last', { store, sampling: { ...sampling, maxTurns: 1 } });
  const first = statusOf(episode.take(ask('first'), sent({ idempotencyKey: 'key' })));
  await delay(20);
  const second = statusOf(episode.take(ask('second'), sent()));
  expect([await first, await second]).toEqual([200, 409]);
});

test('started over with a slower store, equal requests with and without a key have the turns that they had', async () => {
  let ms = 0;
  const store = keysAfter(() => ms);
  const run = async (id: string) => {
    const episode = await open(id, { store, folder: 'agents/again' });
    const keyed = episode.take(ask('hi'), sent({ idempotencyKey: 'key' }));
    await delay(20);
    const plain = episode.take(ask('hi'), sent());
    const ids = [(await keyed).id, (await plain).id];
    return { ids, rows: episode.rows().length };
  };
  const whole = await run('whole');
  expect(whole.rows).toBe(2);
  ms = 100;
  expect(await run('again')).toEqual(whole);
});

test('what cannot fit is refused before its tokens are counted, which would take minutes', async () => {
  const episode = await open('large');
  // Each is short enough to be counted by itself.
  const messages = Array.from({ length: 30 }, () => ({ role: 'user' as const, content: '7'.repeat(1e6) }));
  const large = { ...ask(''), messages };
  const before = performance.now();
  await expect(episode.take(large, sent())).rejects.toMatchObject({
    status: 400,
    code: 'context_length_exceeded',
    message: expect.stringContaining('the model holds 4000 tokens') as string,
  });
  expect(() => episode.countTokens(large)).toThrow('none would fit');
  const toolsOf = (bytes: number) => [{ name: 'send', description: '7'.repeat(bytes), parameters: {} }];
  const described = episode.take({ ...ask('hi'), tools: toolsOf(2e6) }, sent());
  await expect(described).rejects.toMatchObject({ status: 400, code: 'tools_too_large' });
  // Its tokens take some two seconds for each megabyte.
  expect(performance.now() - before).toBeLessThan(20_000);
});

test('tools that are described at length are refused by no model that does not read them', async () => {
  const episode = await open('described');
  const tools = [{ name: 'send', description: 'Sends. '.repeat(30_000), parameters: {} }];
  const first = await episode.take({ ...ask('hi'), tools }, sent());
  const messages = [
    ...ask('hi').messages,
    { role: 'assistant' as const, content: first.text },
    { role: 'user' as const, content: 'more' },
  ];
  await episode.take({ ...ask(''), messages, tools }, sent());
  expect(episode.ended).toBeNull();
});
