import { dealTasks, defineEnvironment, environmentReward, fold, sessionTool, z } from 'gradus';
import type { Dealt } from 'gradus';

const NAME = 'my-agent';
const LEVELS = [3, 4];

/** Level n has all codes of n digits. Each is dealt to one split by its digest, so no code is in two. */
const codesOf = (level: number): Dealt<string> =>
  dealTasks(
    NAME,
    Array.from({ length: 10 ** level }, (_, number) => String(number).padStart(level, '0')),
    (code) => code,
  );
// Where there are too many problems to list, `drawTask` makes the one at given coordinates from random numbers.
const CODES = new Map(LEVELS.map((level) => [level, codesOf(level)]));

/** What an episode changes: how many digits of the code have been dialled, in order. */
export type Safe = { code: string; right: number };

/** A wrong digit makes it spring back. */
export function dial({ code, right }: Safe, digit: number): Safe {
  return { code, right: code[right] === String(digit) ? right + 1 : 0 };
}

const isOpen = ({ code, right }: Safe): boolean => right === code.length;

const dialTool = sessionTool({
  name: 'dial',
  description: 'Dials one digit. The safe opens when its code was dialled from the first digit to the last.',
  arguments: z.strictObject({ digit: z.int().min(0).max(9) }),
});

/** A safe is opened by dialling its code, one digit a call. */
export default defineEnvironment({
  name: NAME,
  levels: LEVELS,
  tools: [dialTool],
  verifiers: [environmentReward()],
  task: (ref) => {
    const code = CODES.get(ref.level)!.at(ref);
    return { ref, prompt: `The code is ${code.split('').join(' ')}.`, info: { code } };
  },
  // The state is a small value that passes from call to call and is kept with the episode: whatever process is killed, the
  // next one goes on from it. The other ways are `replay`, `snapshot`, `reattach` and `pin`.
  sessions: fold<Safe>({
    open: ({ info }) => ({ code: (info as { code: string }).code, right: 0 }),
    act: (safe, call) => {
      const state = dial(safe, (call.arguments as { digit: number }).digit);
      const text = isOpen(state) ? 'it opens' : `${state.right} of ${state.code.length}`;
      return { state, did: { text, done: isOpen(state) } };
    },
    end: (safe) => ({ reward: isOpen(safe) ? 1 : 0 }),
  }),
  // What an expert writes, turn by turn; what the session really answers goes between. The warm start imitates it.
  demonstrate: ({ info }) => {
    const { code } = info as { code: string };
    return {
      turns: code.split('').map((digit) => ({ call: { name: 'dial', arguments: { digit: Number(digit) } } })),
      weight: 1,
    };
  },
  taskCount: (split, level) => CODES.get(level)!.count(split),
});
