import { writeFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import type { ToolCall } from '../../core/episode/episode.ts';
import type { Acted, Attached, Session, Sessions } from '../../environments/session.ts';
import { houseWith, WAYS } from './houses.ts';

// Houses as a host loads them. Before each call a house writes down which process has it, and takes a moment, in which it
// can be killed. The houses of `reattach` stand on a server, which HOUSES_URL names.

const { HOUSES_PID, HOUSES_URL } = process.env;

async function held(): Promise<void> {
  if (HOUSES_PID === undefined) return;
  writeFileSync(HOUSES_PID, String(process.pid));
  await wait(100);
}

async function ask<T>(path: string, body: object = {}): Promise<T> {
  const answer = await fetch(`${HOUSES_URL}/${path}`, { method: 'POST', body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}

const onServer = (id: string, { handle, acts }: { handle: string; acts: number }): Attached => ({
  handle,
  acts,
  act: async (call) => {
    await held();
    return ask<{ text: string }>('act', { id, call });
  },
  end: () => ask('end', { id }),
});

const reattach: Sessions = {
  resume: 'reattach',
  open: async (_, { id }) => onServer(id, await ask('open', { id })),
  attach: async (_, { id }) => onServer(id, await ask('attach', { id })),
  close: (_, { id }) => ask<void>('close', { id }),
};

const slow = <S extends Session>(session: S): S =>
  Object.assign(Object.create(session) as S, {
    act: async (...call: Parameters<Session['act']>): Promise<Acted> => {
      await held();
      return session.act(...call);
    },
  });

function slowed(sessions: Sessions): Sessions {
  switch (sessions.resume) {
    case 'fold':
      return {
        ...sessions,
        act: async (state: unknown, call: ToolCall, context) => {
          await held();
          return sessions.act(state, call, context);
        },
      };
    case 'snapshot':
      return {
        ...sessions,
        open: async (...place) => slow(await sessions.open(...place)),
        restore: async (...place) => slow(await sessions.restore(...place)),
      };
    case 'reattach':
      return reattach;
    default:
      return { ...sessions, open: async (...place) => slow(await sessions.open(...place)) };
  }
}

export default Object.values(WAYS).map((way) => houseWith(slowed(way())));
