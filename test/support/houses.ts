import { z } from 'zod';
import { ToolRefusal, defineEnvironment, sessionTool } from '../../environments/contract/environment.ts';
import type { PlainEnvironment } from '../../environments/contract/environment.ts';
import { fold } from '../../environments/contract/session.ts';
import type { Acted, Session, Sessions } from '../../environments/contract/session.ts';
import { environmentReward } from '../../environments/verifiers/environment-reward.ts';
import type { ToolCall } from '../../core/episode/episode.ts';

// A house of three rooms with a lamp in each, kept in every way that a session can be kept: what differs is only how it
// comes back.

interface House {
  room: number;
  lit: number[];
  calls: number;
}

export const ROOMS = ['hall', 'kitchen', 'attic'];

const tools = [
  sessionTool({
    name: 'go',
    description: 'Goes to another room.',
    arguments: {
      type: 'object',
      properties: { room: { enum: ROOMS } },
      required: ['room'],
      additionalProperties: false,
    },
  }),
  sessionTool({ name: 'light', description: 'Lights the lamp of the room.', arguments: z.strictObject({}) }),
  sessionTool({
    name: 'look',
    description: 'Says where one is, and what is lit.',
    arguments: z.strictObject({}),
  }),
];

/** What the house looks like: no picture, but bytes that differ with what is lit. */
const picture = (lit: readonly number[]) => ({
  mediaType: 'image/png',
  data: Buffer.from(`\x89PNG ${lit.join(' ')}`, 'latin1').toString('base64'),
});

const empty = (): House => ({ room: 0, lit: [], calls: 0 });

/** What a call makes of a house: text, reward and end. */
function lived(house: House, { name, arguments: given }: ToolCall): { house: House; did: Acted } {
  const { room, lit } = house;
  const calls = house.calls + 1;
  if (name === 'go') {
    const next = ROOMS.indexOf((given as { room: string }).room);
    if (next === room) throw new ToolRefusal(`you are in the ${ROOMS[room]}`);
    return { house: { room: next, lit, calls }, did: `in the ${ROOMS[next]}` };
  }
  if (name === 'look') {
    const text = `in the ${ROOMS[room]}, call ${calls}; lit: ${lit.map((one) => ROOMS[one]).join(', ')}`;
    return { house: { room, lit, calls }, did: text };
  }
  if (lit.includes(room)) return { house: { room, lit, calls }, did: { text: 'it is lit', refused: true } };
  const all = [...lit, room];
  const did = {
    text: `lit the ${ROOMS[room]}`,
    images: [picture(all)],
    reward: 1,
    ...(all.length === ROOMS.length && { done: true }),
  };
  return { house: { room, lit: all, calls }, did };
}

class LivingHouse implements Session {
  protected house: House;
  constructor(house = empty()) {
    this.house = house;
  }
  act(call: ToolCall): Acted {
    const { house, did } = lived(this.house, call);
    this.house = house;
    return did;
  }
  end = () => ({ info: { lit: this.house.lit } });
  snapshot = () => ({ ...this.house }) as never;
}

/** Houses of one server, which outlives whoever asks: what `reattach` needs, in one process. */
export class HouseServer {
  readonly houses = new Map<string, LivingHouse & { acts: number; opening: string }>();
  opened = 0;
  closed = 0;

  sessions(): Sessions {
    const found = (id: string, opening: string) => {
      const house = this.houses.get(id);
      if (house?.opening !== opening) throw new Error(`no house ${id} of the opening ${opening}`);
      return house;
    };
    const attached = (id: string, opening: string) => {
      const house = found(id, opening);
      return {
        handle: opening,
        acts: house.acts,
        act: (call: ToolCall) => {
          found(id, opening).acts++;
          return house.act(call);
        },
        end: house.end,
      };
    };
    return {
      resume: 'reattach',
      open: (_, { id, opening }) => {
        this.opened++;
        this.houses.set(id, Object.assign(new LivingHouse(), { acts: 0, opening }));
        return attached(id, opening);
      },
      attach: (_, { id }, handle) => attached(id, handle as string),
      close: (_, { id }, handle) => {
        if (handle !== null && this.houses.get(id)?.opening !== handle) return;
        if (this.houses.delete(id)) this.closed++;
      },
    };
  }
}

export const WAYS: Record<string, () => Sessions> = {
  fold: () =>
    fold<House & Record<string, never>>({
      open: () => empty() as never,
      act: (house, call) => {
        const { house: state, did } = lived(house, call);
        return { state: state as never, did };
      },
      end: (house) => ({ info: { lit: (house as House).lit } }),
    }),
  replay: () => ({ resume: 'replay', open: () => new LivingHouse() }),
  pin: () => ({ resume: 'pin', open: () => new LivingHouse() }),
  snapshot: () => ({
    resume: 'snapshot',
    every: 2,
    open: () => new LivingHouse(),
    restore: (_, __, value) => new LivingHouse(value as unknown as House),
  }),
  reattach: () => new HouseServer().sessions(),
};

export function houseWith(sessions: Sessions, over: Partial<PlainEnvironment> = {}): PlainEnvironment {
  return defineEnvironment({
    name: `house-${sessions.resume}`,
    levels: [1],
    tools,
    verifiers: [environmentReward({ most: ROOMS.length })],
    sessions,
    task: (ref) => ({ ref, prompt: 'Light every lamp.' }),
    demonstrate: () => ({
      weight: 1,
      turns: [
        ...ROOMS.flatMap((room, n) => [
          ...(n > 0 ? [{ call: { name: 'go', arguments: { room } } }] : []),
          { call: { name: 'light', arguments: {} } },
        ]),
        { answer: 'done' },
      ],
    }),
    taskCount: () => 100,
    ...over,
  });
}
