import { describe, expect, test } from 'vitest';
import { actsOf } from '../../../../core/episode/acts.ts';
import type { EpisodeSession, ToolCall, Turn } from '../../../../core/episode/episode.ts';
import type { Environment } from '../../../../environments/contract.ts';
import { hostedHere } from '../../../../environments/host/hosted-environment.ts';
import { HouseServer, houseWith, WAYS } from '../../../support/houses.ts';

const { signal } = new AbortController();
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
    const context = { idempotencyKey: `${id}/${n}`, attempt: 1, signal, session: session() };
    const { observation, session: after } = await environment.call(call, context);
    kept = after ?? kept;
    delete observation.seconds;
    turns.push({ action: { kind: 'call', call }, observation });
  }
  const ended = await environment.end(session(), { answer: null, by: 'environment' }, { signal });
  return { observations: turns.map(({ observation }) => observation), ended, kept };
}

const EXPECTED = [
  { text: 'in the hall, call 1; lit: ' },
  { text: 'lit the hall', reward: 1 },
  { text: 'in the kitchen' },
  { text: 'error: you are in the kitchen', error: 'tool-error' },
  { text: 'lit the kitchen', reward: 1 },
  { text: 'error: it is lit', error: 'tool-error' },
  {
    text: expect.stringMatching(/^error: arguments room: must be equal to one of/u) as string,
    error: 'invalid-arguments',
  },
  { text: expect.stringMatching(/^in the kitchen, call \d; lit: hall, kitchen$/u) as string },
  { text: 'in the attic' },
  { text: 'lit the attic', reward: 1, done: true },
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
  const acts = [{ call: look, observation: { text: first.observation.text } }];
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
    boundary: 'environment',
    message: expect.stringContaining('at most 64000') as string,
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
