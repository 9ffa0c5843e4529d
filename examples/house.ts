import { z } from 'zod';
import { defineEnvironment, sessionTool, ToolRefusal } from '../environments/contract/environment.ts';
import { fold } from '../environments/contract/session.ts';
import { environmentReward } from '../environments/verifiers/environment-reward.ts';
import { formatVerifier } from '../environments/verifiers/format.ts';

const ROOMS = ['hall', 'attic', 'study', 'porch'];
const SPLITS = ['train', 'heldout', 'test'];

/** What calls change: where one stands, and whether the lamp that was asked for is lit. */
interface House {
  at: string;
  wanted: string;
}

const nothing = z.strictObject({});

/** A house with a lamp in every room: only the one that was asked for may be lit. */
export default defineEnvironment({
  name: 'house',
  levels: [1],
  // Without `run`: the session has their calls.
  tools: [
    sessionTool({
      name: 'go',
      description: 'Goes to a room.',
      arguments: z.strictObject({ room: z.enum(ROOMS) }),
    }),
    sessionTool({ name: 'look', description: 'Says which room this is.', arguments: nothing }),
    sessionTool({ name: 'light', description: 'Lights the lamp of this room.', arguments: nothing }),
  ],
  // The state travels with the episode: whichever process has the next call goes on with it.
  sessions: fold<House>({
    open: ({ info }) => info as unknown as House,
    act: (house, { name, arguments: given }) => {
      if (name === 'look') return { state: house, did: `the ${house.at}` };
      if (name === 'go') {
        const { room } = given as { room: string };
        if (room === house.at) throw new ToolRefusal(`this is the ${room}`);
        return { state: { ...house, at: room }, did: `the ${room}` };
      }
      const right = house.at === house.wanted;
      return {
        state: house,
        did: { text: right ? 'light' : 'the wrong lamp', reward: right ? 1 : 0, done: true },
      };
    },
  }),
  // What the environment gave, as a score in [0, 1].
  verifiers: [environmentReward(), formatVerifier()],
  task: (ref) => {
    // Each split has pairs of rooms of its own: twelve in all.
    const pair = SPLITS.indexOf(ref.split) * 4 + (ref.index % 4);
    const at = ROOMS[Math.floor(pair / 3)]!;
    const wanted = ROOMS.filter((room) => room !== at)[pair % 3]!;
    return { ref, prompt: `You are in the ${at}. Light the ${wanted}.`, info: { at, wanted } };
  },
  demonstrate: ({ info }) => ({
    turns: [
      { call: { name: 'go', arguments: { room: (info as unknown as House).wanted } } },
      { call: { name: 'light', arguments: {} } },
    ],
    weight: 1,
  }),
  taskCount: () => 4,
});
