import { defineEnvironment, environmentReward, fold, sessionTool, z } from 'gradus';
import type { Split, TaskRef } from 'gradus';

/** Of every seven codes the first five are for training, one is held out, one is for the final report. */
const PARTS: Record<Split, readonly number[]> = { train: [0, 1, 2, 3, 4], heldout: [5], test: [6] };

/** Level n has codes of n digits. Other coordinates are other codes, so no code is in two splits. */
function codeAt({ split, level, index }: TaskRef): string {
  const parts = PARTS[split];
  const number = 7 * Math.floor(index / parts.length) + parts[index % parts.length]!;
  // A step that shares no factor with 10 goes through all codes once, and neighbours look unlike each other. (By fives the
  // last digit would tell the split, and held-out codes would end in digits that training never saw.)
  return String((number * 7919) % 10 ** level).padStart(level, '0');
}

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
  name: 'my-agent',
  levels: [3, 4],
  tools: [dialTool],
  verifiers: [environmentReward()],
  task: (ref) => {
    const code = codeAt(ref);
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
  taskCount: (split, level) => PARTS[split].length * Math.floor(10 ** level / 7),
});
