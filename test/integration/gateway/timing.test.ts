import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, expect, test, vi } from 'vitest';
import { randomKey } from '../../../core/random.ts';
import type { SampleRequest } from '../../../engine/policy.ts';
import type { AgentEpisode, AgentEpisodeOptions } from '../../../gateway/agent-episode.ts';
import type { OfferedTools } from '../../../gateway/episode-tools.ts';
import { runAgent } from '../../../gateway/run-agent.ts';
import { serveGateway } from '../../../gateway/server.ts';
import { tokenizer } from '../../support/fixture-tokenizer.ts';
import { ASKS, episodeOptions } from '../../support/gateway.ts';
import { openTestStore } from '../../support/test-store.ts';

// What an episode has does not depend on who is quicker: its turns, the store, or its calls.

const { store } = await openTestStore();
const gateway = await serveGateway();
afterAll(() => gateway.close());

type Sampled = 'stops' | 'fills its room';

/** Opens an episode whose turns take so long and end so. */
function open(
  id: string,
  turn: (request: SampleRequest, nth: number) => Promise<Sampled>,
  { sampling, ...more }: Partial<AgentEpisodeOptions> | { sampling: object } = {},
  by = gateway,
): Promise<AgentEpisode> {
  let turns = 0;
  const policy: AgentEpisodeOptions['policy'] = {
    sample: async (request) => {
      const how = await turn(request, turns++);
      const tokens = how === 'stops' ? [request.stopTokens[0]!] : Array<number>(request.maxNewTokens).fill(5);
      return { tokens, samplerLogprobs: tokens.map(() => -1), finish: how === 'stops' ? 'stop' : 'length' };
    },
    release: () => undefined,
    close: () => Promise.resolve(),
  };
  const plain = episodeOptions(policy, store, id);
  return by.open({
    ...plain,
    startsOver: true,
    branches: 'train',
    key: randomKey('timing'),
    sampling: { ...plain.sampling, ...sampling },
    ...more,
  });
}

const says = (text: string) => ({ role: 'user' as const, content: text });
interface Completion {
  id: string;
  choices: [{ message: object }];
}

/** Asks as a client does. */
function client(episode: AgentEpisode) {
  const url = `${gateway.variablesFor(episode)['OPENAI_BASE_URL']}/chat/completions`;
  return (messages: readonly object[], key?: string): Promise<Response> =>
    fetch(url, {
      method: 'POST',
      headers: key === undefined ? {} : { 'idempotency-key': key },
      body: JSON.stringify({ model: 'policy', messages }),
    });
}

const completed = async (response: Promise<Response>): Promise<Completion> =>
  (await (await response).json()) as Completion;

const ranBy = (episode: AgentEpisode, script: string) =>
  runAgent(gateway, episode, {
    argv: [process.execPath, '-e', `${ASKS} ${script}`],
    task: 'a task',
    timeoutSeconds: 120,
    signal: new AbortController().signal,
  });

test('an agent that starts over is refused no turn that it had, though a limit is reached before it asks', async () => {
  let sampled = 0;
  // The second conversation begins while the first one samples; started over, that is found at once.
  const script = `(async () => {
    const first = ask('fills');
    await new Promise((resolve) => setTimeout(resolve, 200));
    const answers = [await ask('other'), await first];
    process.exit(answers.every(({ status }) => status === 200) ? 0 : 1);
  })()`;
  const run = async (id: string) => {
    const fills = tokenizer.encode('fills');
    const turn = async ({ prefix }: SampleRequest): Promise<Sampled> => {
      sampled++;
      await delay(2000);
      return fills.every((token) => prefix.includes(token)) ? 'fills its room' : 'stops';
    };
    const sampling = { maxCompletionTokens: 20, maxTurns: 2 };
    const episode = await open(id, turn, { folder: 'agents/over', sampling });
    return { status: (await ranBy(episode, script)).status, rows: episode.rows().length };
  };
  const whole = await run('whole');
  expect(whole.rows).toBe(2);
  expect(await run('again')).toEqual(whole);
  expect(sampled).toBe(2);
});

test('an agent that asks otherwise when it starts over has as many turns as any other', async () => {
  const run = async (id: string): Promise<number[]> => {
    const sampling = { maxTurns: 2 };
    const episode = await open(id, () => Promise.resolve('stops'), { folder: 'agents/otherwise', sampling });
    const ask = client(episode);
    const statuses: number[] = [];
    for (let turn = 1; turn <= 3; turn++) statuses.push((await ask([says(`${id} ${turn}`)])).status);
    return statuses;
  };
  expect(await run('before')).toEqual([200, 200, 409]);
  expect(await run('after')).toEqual([200, 200, 409]);
});

test('who has the last turn does not depend on how quickly the store finds a key', async () => {
  const run = async (id: string, slow: string | undefined): Promise<number[]> => {
    const odd = Object.create(store, {
      find: {
        value: async (key: string, ...rest: [never]) => {
          if (key.includes('/keys/') && slow !== undefined && !waited) {
            waited = true;
            await delay(500);
          }
          return store.find(key, ...rest);
        },
      },
    }) as typeof store;
    let waited = false;
    const episode = await open(id, () => Promise.resolve('stops'), {
      store: odd,
      sampling: { maxTurns: 1 },
    });
    const ask = client(episode);
    const asked = vi.spyOn(episode, 'take');
    const first = ask([says('first')], 'first');
    await vi.waitFor(() => expect(asked).toHaveBeenCalledTimes(1), 60_000);
    const second = ask([says('second')], 'second');
    return [(await first).status, (await second).status];
  };
  expect(await run('quick', undefined)).toEqual([200, 409]);
  expect(await run('slow', 'first')).toEqual([200, 409]);
});

test('a request that is sent again by its key gets its turn, though an equal answer has come meanwhile', async () => {
  let go = (): void => undefined;
  const held = new Promise<void>((resolve) => (go = resolve));
  const episode = await open('keyed', async (_, nth) => {
    if (nth === 0) await held;
    return 'stops';
  });
  const ask = client(episode);
  const asked = vi.spyOn(episode, 'take');
  const first = completed(ask([says('hello')]));
  await vi.waitFor(() => expect(asked).toHaveBeenCalledTimes(1), 60_000);
  const second = await completed(ask([says('hello')]));
  const follows = [says('hello'), second.choices[0].message, says('and now')];
  const told = completed(ask(follows, 'key'));
  await vi.waitFor(() => expect(asked).toHaveBeenCalledTimes(3), 60_000);
  go();
  await first;
  expect((await completed(ask(follows, 'key'))).id).toBe((await told).id);
});

test('what follows one of two equal answers follows the one that was asked first, whichever comes first', async () => {
  const branches = async (id: string, slow: number) => {
    const episode = await open(id, async (_, nth) => {
      if (nth === slow) await delay(1000);
      return 'stops';
    });
    const ask = client(episode);
    const talk = async (): Promise<void> => {
      const { choices } = await completed(ask([says('hello')]));
      await completed(ask([says('hello'), choices[0].message, says('and now')]));
    };
    const asked = vi.spyOn(episode, 'take');
    const first = talk();
    await vi.waitFor(() => expect(asked).toHaveBeenCalled(), 60_000);
    await Promise.all([first, talk()]);
    return episode.branches().map((path) => path.map((turn) => turn.id));
  };
  expect(await branches('second-is-quicker', 0)).toEqual(await branches('first-is-quicker', 1));
});

/** A tool that takes so long. */
const sending = (ms: number): OfferedTools => ({
  described: [{ name: 'send', description: 'Sends.', parameters: { type: 'object' } }],
  episode: 'calls',
  inSession: false,
  mostCalls: 9,
  isOnce: () => false,
  make: async (_, __, signal) => {
    await delay(ms, undefined, { signal });
    return () => Promise.resolve({ observation: { text: 'sent' } });
  },
});

test('a refused turn waits for the calls that were asked for at the same time', async () => {
  const tools = sending(2000);
  const episode = await open('calls', () => Promise.resolve('stops'), { tools, sampling: { maxTurns: 1 } });
  const { status } = await ranBy(
    episode,
    `fetch(process.env.GRADUS_TOOLS_URL + '/send', { method: 'POST', body: '{}' });
    (async () => {
      await (await ask('first')).json();
      const { status } = await ask('second');
      process.exit(status === 200 ? 0 : 1);
    })()`,
  );
  expect(status).toEqual({ kind: 'truncated', limit: 'turns' });
  expect(episode.tools!.unfinished).toEqual([]);
  expect(episode.tools!.calls).toHaveLength(1);
});

test('a refusal waits for no answer that waits behind it on its own connection, and for none when the episode is closed', async () => {
  const own = await serveGateway();
  const tools = sending(300);
  const options = { tools, sampling: { maxTurns: 1 } };
  const episode = await open('pipelined', () => Promise.resolve('stops'), options, own);
  const variables = own.variablesFor(episode);
  const policy = new URL(`${variables['OPENAI_BASE_URL']}/chat/completions`);
  const tool = new URL(`${variables['GRADUS_TOOLS_URL']}/send`);
  const body = (content: string): string => JSON.stringify({ model: 'policy', messages: [says(content)] });
  const first = await fetch(policy, { method: 'POST', body: body('first') });
  expect(first.status).toBe(200);
  const posted = ({ pathname }: URL, text: string, header = ''): string =>
    `POST ${pathname} HTTP/1.1\r\nhost: here\r\n${header}content-length: ${text.length}\r\n\r\n${text}`;
  // While the key of the turn is looked for, the call behind it has begun.
  const socket = connect(Number(policy.port), '127.0.0.1');
  await once(socket, 'connect');
  let told = '';
  socket.on('data', (data) => (told += data.toString()));
  socket.write(posted(policy, body('second'), 'idempotency-key: key\r\n') + posted(tool, '{}'));
  const statuses = () => (told.match(/HTTP\/1.1 \d+/g) ?? []).map((line) => line.slice(-3));
  await expect.poll(statuses, { timeout: 60_000 }).toEqual(['409', '200']);
  await own.close();
  socket.destroy();
});
