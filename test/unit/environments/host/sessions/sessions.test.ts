import { describe, expect, test, vi } from 'vitest';
import { actsOf, callKey } from '../../../../../core/episode/acts.ts';
import type { Act } from '../../../../../core/episode/acts.ts';
import type { EpisodeSession, ToolCall, Turn } from '../../../../../core/episode/episode.ts';
import { GradusError } from '../../../../../core/errors.ts';
import type { Environment, ToolContext } from '../../../../../environments/contract/environment.ts';
import { hostedHere } from '../../../../../environments/host/hosted-environment.ts';
import type { Sessions } from '../../../../../environments/contract/session.ts';
import { HouseServer, houseWith, WAYS } from '../../../../support/houses.ts';

const { signal } = new AbortController();
/** It only ends what hangs. */
const SOON = { timeout: 120_000 };
const go = (room: string): ToolCall => ({ name: 'go', arguments: { room } });
const light: ToolCall = { name: 'light', arguments: {} };
const look: ToolCall = { name: 'look', arguments: {} };
const CALLS = [
  look,
  light,
  go('kitchen'),
  go('kitchen'),
  light,
  light,
  go('cellar'),
  look,
  go('attic'),
  light,
];

/** Another id each time: sessions of one process are told apart by them. */
let episodes = 0;

/** Plays calls, as a rollout would; before call `n` of `moves` the process is another one. */
async function play(
  of: () => Environment,
  calls: readonly ToolCall[],
  moves: readonly number[] = [],
  id = `run/rl/1/0/${++episodes}`,
) {
  let environment = hostedHere(of());
  const turns: Pick<Turn, 'action' | 'observation'>[] = [];
  let kept: EpisodeSession | undefined;
  const session = () => ({
    ref: { environment: environment.name, split: 'train' as const, level: 1, index: 0 },
    // Nothing of a process that is gone is found again under another name.
    id,
    acts: actsOf(turns, environment.tools),
    kept,
  });
  for (const [n, call] of calls.entries()) {
    if (moves.includes(n)) environment = hostedHere({ ...of(), name: `${environment.name}'` });
    const context = { idempotencyKey: callKey(id, n + 1), attempt: 1, signal, session: session() };
    const { observation, session: after } = await environment.call(call, context);
    kept = after ?? kept;
    delete observation.seconds;
    turns.push({ action: { kind: 'call', call }, observation });
  }
  const ended = await environment.end(session(), { answer: null, by: 'environment' }, { signal });
  return { observations: turns.map(({ observation }) => observation), ended, kept };
}

const picture = {
  type: 'image',
  mediaType: 'image/png',
  sha256: expect.stringMatching(/^[0-9a-f]{64}$/u) as string,
  bytes: expect.any(Number) as number,
};
const EXPECTED = [
  { text: 'in the hall, call 1; lit: ' },
  { text: 'lit the hall\n[image image/png]', reward: 1, images: [picture] },
  { text: 'in the kitchen' },
  { text: 'error: you are in the kitchen', error: 'tool-error' },
  { text: 'lit the kitchen\n[image image/png]', reward: 1, images: [picture] },
  { text: 'error: it is lit', error: 'tool-error' },
  {
    text: expect.stringMatching(/^error: arguments room: must be equal to one of/u) as string,
    error: 'invalid-arguments',
  },
  { text: expect.stringMatching(/^in the kitchen, call \d; lit: hall, kitchen$/u) as string },
  { text: 'in the attic' },
  { text: 'lit the attic\n[image image/png]', reward: 1, done: true, images: [picture] },
];

describe.each(Object.keys(WAYS))('a session that is kept by %s', (way) => {
  test('goes on from call to call, is told its tasks and ends with a last word', async () => {
    const { observations, ended } = await play(() => houseWith(WAYS[way]!()), CALLS);
    expect(observations).toEqual(EXPECTED);
    expect(ended).toEqual({ info: { lit: [0, 1, 2] } });
  });

  test('is the same when its process is another one before any call', async () => {
    const server = new HouseServer();
    const of = () => houseWith(way === 'reattach' ? server.sessions() : WAYS[way]!());
    const alone = await play(of, CALLS);
    for (let n = 1; n < CALLS.length; n++) {
      const moved = play(of, CALLS, [n]);
      if (way === 'pin') {
        await expect(moved).rejects.toMatchObject({
          boundary: 'environment',
          type: 'session-lost',
          retryable: false,
        });
      } else expect(await moved).toMatchObject({ observations: alone.observations, ended: alone.ended });
    }
    if (way !== 'pin')
      expect(await play(of, CALLS, [1, 2, 3, 5, 8])).toMatchObject({ observations: alone.observations });
    if (way === 'reattach') expect([server.houses.size, server.closed]).toEqual([0, server.opened]);
  });
});

test('a session that does not do the same twice is a failure of the environment that says where', async () => {
  let processes = 0;
  const of = () => {
    const process = ++processes;
    return houseWith({ resume: 'replay', open: () => ({ act: () => `process ${process}` }) });
  };
  await expect(play(of, [look, look, look], [2])).rejects.toMatchObject({
    boundary: 'environment',
    type: 'replay-differs',
    message: expect.stringMatching(/call 1 of .*"process 1".*"process 2"/u) as string,
  });
});

test('images are shown by a line of text and by their digest, of which other bytes are other ones', async () => {
  const showing = (data: Uint8Array | string) => () =>
    houseWith({
      resume: 'replay',
      open: () => ({ act: () => ({ text: 'seen', images: [{ mediaType: 'image/png', data }] }) }),
    });
  const { observations } = await play(showing(new Uint8Array([1, 2, 3])), [look]);
  const sha256 = '039058c6f2c0cb492c533b0a4d14ef77cc0f78abccced5287d84a1a2011cfb81';
  const images = [{ type: 'image', mediaType: 'image/png', sha256, bytes: 3 }];
  expect(observations).toEqual([{ text: 'seen\n[image image/png]', images }]);
  // The same in base64, and another process that shows something else.
  expect((await play(showing('AQID'), [look])).observations).toEqual(observations);
  let processes = 0;
  const differs = () => showing(new Uint8Array([processes++]))();
  await expect(play(differs, [look, look], [1])).rejects.toMatchObject({ type: 'replay-differs' });
});

test.each([
  [
    'more than eight',
    Array.from({ length: 9 }, () => ({ mediaType: 'image/png', data: 'AA==' })),
    'gave 9 images at once',
  ],
  ['too large', [{ mediaType: 'image/png', data: new Uint8Array(2 ** 22 + 1) }], 'of 4194305 bytes or more'],
  [
    'too large together',
    Array.from({ length: 5 }, () => ({ mediaType: 'image/png', data: new Uint8Array(2 ** 20) })),
    'at most 4194304',
  ],
  ['too large in base64', [{ mediaType: 'image/png', data: 'A'.repeat(2 ** 24) }], 'at most 4194304'],
  ['no base64', [{ mediaType: 'image/png', data: 'a picture' }], 'no base64'],
  ['of no media type', [{ mediaType: 'text/html', data: 'AA==' }], 'of the type text/html'],
  ['no bytes', [{ mediaType: 'image/png', data: 7 }], 'neither bytes nor base64'],
  ['nothing', [null], 'of the type undefined'],
  ['no list', { length: 3 }, 'no array'],
])('images that are %s are a failure of the tool that says so', async (_, images, message) => {
  const playing = play(
    () => houseWith({ resume: 'replay', open: () => ({ act: () => ({ text: '', images }) as never }) }),
    [look],
  );
  await expect(playing).rejects.toMatchObject({
    boundary: 'tool',
    type: 'session',
    retryable: false,
    message: expect.stringContaining(message) as string,
  });
});

test('a server that has taken a call of which we know nothing has lost the episode', async () => {
  const server = new HouseServer();
  const id = 'run/rl/1/0/stolen';
  const of = () => houseWith(server.sessions());
  const environment = hostedHere(of());
  const session = {
    ref: { environment: 'house-reattach', split: 'train' as const, level: 1, index: 0 },
    id,
    acts: [],
  };
  const first = await environment.call(look, { idempotencyKey: 'a', attempt: 1, signal, session });
  server.houses.get(id)!.acts++;
  const acts = [{ call: look, turn: 1, observation: { text: first.observation.text } }];
  const elsewhere = hostedHere({ ...of(), name: 'elsewhere' });
  const calling = elsewhere.call(look, {
    idempotencyKey: 'b',
    attempt: 1,
    signal,
    session: { ...session, acts, kept: first.session },
  });
  await expect(calling).rejects.toMatchObject({
    type: 'session-lost',
    message: expect.stringContaining('2 calls') as string,
  });
});

test('a late call of an attempt that was cut off does nothing in the session of the next', async () => {
  const server = new HouseServer();
  const ref = { environment: 'house-reattach', split: 'train' as const, level: 1, index: 0 };
  /** A worker, which has no session of the others. */
  const worker = (name: string) => {
    const environment = hostedHere(houseWith(server.sessions(), { name }));
    const acts: Act[] = [];
    let kept: EpisodeSession | undefined;
    return async () => {
      const session = { ref, id: 'run/rl/1/0/late', acts: [...acts], kept };
      const called = await environment.call(look, { idempotencyKey: 'a', attempt: 1, signal, session });
      kept = called.session;
      const { text } = called.observation;
      acts.push({ call: look, turn: acts.length + 1, observation: { text } });
      return text;
    };
  };
  const [first, next] = [worker('first'), worker('next')];
  expect(await first()).toContain('call 1;');
  expect(await next()).toContain('call 1;');
  await expect(first()).rejects.toThrow('no house run/rl/1/0/late of the opening');
  expect(await next()).toContain('call 2;');
});

test('a fold whose act changes its state in place, or gives too large a one, harms nobody but itself', async () => {
  const sessions = (act: (state: { n: number }) => unknown) =>
    houseWith({ resume: 'fold', open: () => ({ n: 0 }), act: act as never });
  const counts = await play(
    () => sessions((state) => ({ state: { n: ++state.n }, did: `call ${state.n}` })),
    [look, look],
    [1],
  );
  expect(counts.observations.map((one) => one!.text)).toEqual(['call 1', 'call 2']);
  const large = play(() => sessions(() => ({ state: { n: 'x'.repeat(70_000) }, did: 'large' })), [look]);
  await expect(large).rejects.toMatchObject({
    boundary: 'tool',
    message: expect.stringContaining('at most 64000') as string,
  });
});

describe('the last word of a session', () => {
  const asked = () => ({
    ref: { environment: 'x', split: 'train' as const, level: 1, index: 0 },
    id: `run/end/${++episodes}`,
    acts: [],
  });
  const ending = (end: () => Promise<object>, endSeconds?: number | null) =>
    hostedHere(
      houseWith({
        resume: 'fold',
        open: () => 0,
        act: () => ({ state: 0, did: '' }),
        end,
        ...(endSeconds !== undefined && { endSeconds }),
      }),
    ).end(asked(), { answer: '', by: 'answer' }, { signal });

  test.each([
    ['a minute', undefined, 60],
    ['as long as it says', 600, 600],
  ])('may take %s', async (_, endSeconds, limit) => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const never = ending(() => new Promise(() => undefined), endSeconds).catch((error: unknown) => error);
      await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1), SOON);
      vi.advanceTimersByTime(1000 * limit);
      const message = `a session of house-fold took longer than ${limit} s to end`;
      expect(await never).toMatchObject({ boundary: 'environment', type: 'end', message });
    } finally {
      vi.useRealTimers();
    }
  });

  test('is waited for where it says that all in it has limits of its own', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      let say!: (answer: object) => void;
      const begun = vi.fn(() => new Promise<object>((resolve) => (say = resolve)));
      const said = ending(begun, null);
      await vi.waitFor(() => expect(begun).toHaveBeenCalled(), SOON);
      vi.advanceTimersByTime(3_600_000);
      say({ reward: 1 });
      expect(await said).toEqual({ reward: 1 });
    } finally {
      vi.useRealTimers();
    }
  });
});

test('a session that could not act is opened again for the next attempt', async () => {
  let opened = 0;
  const environment = hostedHere(
    houseWith({
      resume: 'replay',
      open: () => {
        const number = ++opened;
        return {
          act: () => {
            if (number === 1) throw new Error('the socket is gone');
            return `session ${number}`;
          },
        };
      },
    }),
  );
  const session = {
    ref: { environment: 'x', split: 'train' as const, level: 1, index: 0 },
    id: 'run/again',
    acts: [],
  };
  const attempt = (n: number) => environment.call(look, { idempotencyKey: 'a', attempt: n, signal, session });
  await expect(attempt(1)).rejects.toMatchObject({ boundary: 'tool', type: 'failed', retryable: true });
  expect((await attempt(2)).observation.text).toBe('session 2');
});

test.each([
  ['an error of its own', new Error('odd input'), 'tool'],
  ['one of the environment', new GradusError('environment', 'python-raised', 'odd input'), 'tool'],
  ['a lost session', new GradusError('environment', 'session-lost', 'the page is gone'), 'tool'],
  [
    'a server that is away',
    new GradusError('environment', 'server-unreachable', 'refused', { retryable: true }),
    'environment',
  ],
  ['what it needs is away', new GradusError('infra', 'mcp', 'it has ended', { retryable: true }), 'infra'],
])('a call that makes its session throw %s is no place to hide', async (_, error, boundary) => {
  const act = () => {
    throw error;
  };
  await expect(
    play(() => houseWith({ resume: 'replay', open: () => ({ act }) }), [look]),
  ).rejects.toMatchObject({
    boundary,
  });
});

test('calls that are made again have the keys that they had', async () => {
  const keys: string[] = [];
  const act = (_: ToolCall, { idempotencyKey }: ToolContext) => String(keys.push(idempotencyKey) && 'ok');
  await play(
    () => houseWith({ resume: 'replay', open: () => ({ act }) }),
    [look, look, look],
    [2],
    'run/keys',
  );
  const [first, second, third] = [1, 2, 3].map((n) => `run/keys/${n}`);
  // Before the third they are made again in another process, where its end is said, too.
  expect(keys).toEqual([first, second, first, second, third]);
});

test('a reward of -0 is 0 when its call is made again', async () => {
  const environment = () =>
    houseWith({ resume: 'replay', open: () => ({ act: () => ({ text: 'ok', reward: -0 }) }) });
  const asked = {
    ref: { environment: 'x', split: 'train' as const, level: 1, index: 0 },
    id: 'run/minus-zero',
    // As it was kept.
    acts: [{ call: look, turn: 1, observation: { text: 'ok', reward: 0 } }],
  };
  const context = { idempotencyKey: 'run/minus-zero/2', attempt: 1, signal, session: asked };
  const { observation } = await hostedHere(environment()).call(look, context);
  expect(observation).toMatchObject({ text: 'ok' });
});

describe('a session that is opened in vain is closed', () => {
  const slow = () => {
    const counts = { opened: 0, closed: 0 };
    const doors: (() => void)[] = [];
    const environment = hostedHere(
      houseWith({
        resume: 'replay',
        open: async () => {
          await new Promise<void>((open) => doors.push(open));
          counts.opened++;
          return { act: () => 'ok', close: () => void counts.closed++ };
        },
      }),
    );
    const session = {
      ref: { environment: 'x', split: 'train' as const, level: 1, index: 0 },
      id: 'run/in-vain',
      acts: [],
    };
    const call = (by: AbortSignal) =>
      environment.call(look, { idempotencyKey: 'a', attempt: 1, signal: by, session });
    return { counts, doors, call, close: () => environment.close([session], { signal }) };
  };

  test('where its call was called off meanwhile', async () => {
    const { counts, doors, call } = slow();
    const calledOff = new AbortController();
    const calling = call(calledOff.signal);
    await expect.poll(() => doors.length).toBe(1);
    calledOff.abort(new Error('called off'));
    await expect(calling).rejects.toThrow('called off');
    doors[0]!();
    await expect.poll(() => counts).toEqual({ opened: 1, closed: 1 });
  });

  test('where another attempt opened one at the same time', async () => {
    const { counts, doors, call, close } = slow();
    const calls = [call(signal), call(signal)];
    await expect.poll(() => doors.length).toBe(2);
    for (const open of doors) open();
    await Promise.all(calls);
    await close();
    await expect.poll(() => counts).toEqual({ opened: 2, closed: 2 });
  });
});

test('an attempt that is cut off in its first call takes nothing from the one that went on', async () => {
  const calls: AbortSignal[] = [];
  let closed = 0;
  const environment = hostedHere(
    houseWith({
      resume: 'pin',
      open: () => ({
        act: (_, context) => {
          calls.push(context.signal);
          // The first call waits until nobody does any more.
          return calls.length === 1 ? new Promise<string>(() => undefined) : `call ${calls.length}`;
        },
        close: () => void closed++,
      }),
    }),
  );
  const asked = (acts: Act[], kept?: EpisodeSession) => ({
    ref: { environment: 'x', split: 'train' as const, level: 1, index: 0 },
    id: 'run/cut-off',
    acts,
    kept,
  });
  const call = (acts: Act[], by: AbortSignal, kept?: EpisodeSession) =>
    environment.call(look, { idempotencyKey: 'a', attempt: 1, signal: by, session: asked(acts, kept) });
  const cutOff = new AbortController();
  const first = call([], cutOff.signal);
  await expect.poll(() => calls.length).toBe(1);
  const { observation, session: kept } = await call([], signal);
  cutOff.abort(new Error('cut off'));
  await expect(first).rejects.toThrow('cut off');
  expect(closed).toBe(1);
  const acts = [{ call: look, turn: 1, observation: { text: observation.text } }];
  expect((await call(acts, signal, kept)).observation.text).toBe('call 3');
  await environment.close([asked(acts, kept)], { signal });
  expect(closed).toBe(2);
});

describe('what is opened on a server and brings no call', () => {
  const asked = (id: string) => ({
    ref: { environment: 'x', split: 'train' as const, level: 1, index: 0 },
    id,
    acts: [],
  });

  test('is closed by whoever opened it, who alone knows its handle, and nothing else is', async () => {
    const open = new Set<string>();
    const environment = hostedHere(
      houseWith({
        resume: 'reattach',
        open: (_, { opening }) => {
          open.add(opening);
          return { handle: opening, act: () => Promise.reject(new Error('the server is ill')) };
        },
        attach: () => Promise.reject(new Error('nobody comes back')),
        close: (_, __, handle) => void (handle === null ? open.clear() : open.delete(handle as string)),
      }),
    );
    open.add('the next attempt’s');
    for (let attempt = 1; attempt <= 5; attempt++) {
      const calling = environment.call(look, {
        idempotencyKey: 'a',
        attempt,
        signal,
        session: asked('run/ill'),
      });
      await expect(calling).rejects.toMatchObject({ type: 'failed' });
    }
    await expect.poll(() => [...open]).toEqual(['the next attempt’s']);
    await environment.close([asked('run/ill')], { signal });
    expect(open.size).toBe(0);
  });

  test('is closed, too, where it is opened when its call is called off', async () => {
    const doors: (() => void)[] = [];
    const closed: unknown[] = [];
    const environment = hostedHere(
      houseWith({
        resume: 'reattach',
        open: async () => {
          await new Promise<void>((open) => doors.push(open));
          return { handle: 'late', act: () => 'ok' };
        },
        attach: () => Promise.reject(new Error('nobody comes back')),
        close: (_, __, handle) => void closed.push(handle),
      }),
    );
    const calledOff = new AbortController();
    const calling = environment.call(look, {
      idempotencyKey: 'a',
      attempt: 1,
      signal: calledOff.signal,
      session: asked('run/late'),
    });
    await expect.poll(() => doors.length).toBe(1);
    calledOff.abort(new Error('called off'));
    await expect(calling).rejects.toThrow('called off');
    doors[0]!();
    await expect.poll(() => closed).toEqual(['late']);
  });
});

test('where the known session of an episode cannot be closed, others under its id still are', async () => {
  const closed: unknown[] = [];
  const environment = hostedHere(
    houseWith({
      resume: 'reattach',
      open: () => ({ handle: 'known', act: () => 'ok' }),
      attach: () => ({ handle: 'known', act: () => 'ok' }),
      close: (_, __, handle) => {
        closed.push(handle);
        if (handle !== null) throw new GradusError('environment', 'server-error', 'answered 503');
      },
    }),
  );
  const session = {
    ref: { environment: 'x', split: 'train' as const, level: 1, index: 0 },
    id: 'run/others',
    acts: [],
    kept: { handle: 'known' },
  };
  const incidents: unknown[] = [];
  await environment.close([session], { signal, incident: (incident) => incidents.push(incident) });
  expect(closed).toEqual(['known', null]);
  expect(incidents).toHaveLength(1);
});

test('a last word that could not be said is asked for again, and the session closed once', async () => {
  const lines: string[] = [];
  const sessions: Sessions = {
    resume: 'pin',
    open: () => ({
      act: () => 'ok',
      end: () => {
        lines.push('end');
        if (lines.length > 1) return { reward: 1 };
        throw new GradusError('environment', 'server-error', 'answered 503', { retryable: true });
      },
      close: () => void lines.push('close'),
    }),
  };
  expect((await play(() => houseWith(sessions), [look])).ended).toEqual({ reward: 1 });
  expect(lines).toEqual(['end', 'end', 'close']);
});
