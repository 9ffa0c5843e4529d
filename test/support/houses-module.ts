import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import type { ToolCall } from '../../core/episode/episode.ts';
import type { Task, ToolContext } from '../../environments/contract/environment.ts';
import type {
  Acted,
  Attached,
  Session,
  SessionPlace,
  Sessions,
} from '../../environments/contract/session.ts';
import { houseWith, WAYS } from './houses.ts';

// Houses as a host loads them. A call takes a moment, and as long as there is the file HOUSES_GATE, in which its process,
// whose number is then in HOUSES_PID, can be killed. The houses of `reattach` stand on a server, which HOUSES_URL names. In
// `house-pin-slow` one goes by long calls: those of episodes whose name begins as the file HOUSES_HOLD says wait as long as
// there is this file.

const { HOUSES_PID, HOUSES_GATE = '', HOUSES_URL, HOUSES_HOLD, HOUSES_MS = '100' } = process.env;

async function held(): Promise<void> {
  if (HOUSES_PID !== undefined) writeFileSync(HOUSES_PID, String(process.pid));
  await wait(Number(HOUSES_MS));
  while (existsSync(HOUSES_GATE)) await wait(20);
}

async function waits(context: ToolContext): Promise<void> {
  const { idempotencyKey, signal } = context;
  if (HOUSES_HOLD === undefined) return;
  while (existsSync(HOUSES_HOLD)) {
    if (!idempotencyKey.startsWith(readFileSync(HOUSES_HOLD, 'utf8'))) return;
    context.heartbeat(null);
    await wait(50, undefined, { signal });
  }
}

async function ask<T>(path: string, body: object = {}): Promise<T> {
  const answer = await fetch(`${HOUSES_URL}/${path}`, { method: 'POST', body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}

const onServer = (id: string, opening: string, { acts }: { acts: number }): Attached => ({
  handle: opening,
  acts,
  act: async (call) => {
    await held();
    return ask<{ text: string }>('act', { id, opening, call });
  },
  end: () => ask('end', { id, opening }),
});

const reattach: Sessions = {
  resume: 'reattach',
  open: async (_, { id, opening }) => onServer(id, opening, await ask('open', { id, opening })),
  attach: async (_, { id }, handle) =>
    onServer(id, handle as string, await ask('attach', { id, opening: handle })),
  close: (_, { id }, opening) => ask<void>('close', { id, opening }),
};

const slow = <S extends Session>(session: S): S =>
  Object.assign(Object.create(session) as S, {
    act: async (call: ToolCall, context: ToolContext): Promise<Acted> => {
      await held();
      if (call.name === 'go') await waits(context);
      return session.act(call, context);
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
        open: async (...place: Parameters<typeof sessions.open>) => slow(await sessions.open(...place)),
        restore: async (...place) => slow(await sessions.restore(...place)),
      };
    case 'reattach':
      return reattach;
    default:
      return {
        ...sessions,
        open: async (task: Task, place: SessionPlace) => slow(await sessions.open(task, place)),
      };
  }
}

const pinned = houseWith(slowed(WAYS['pin']!()));

export default [
  ...Object.values(WAYS).map((way) => houseWith(slowed(way()))),
  {
    ...pinned,
    name: 'house-pin-slow',
    tools: pinned.tools.map((tool) => (tool.name === 'go' ? { ...tool, placement: 'long' as const } : tool)),
  },
];
