import { RandomStream } from '../../../core/random.ts';
import type { Demonstration, DemonstrationTurn, Task } from '../../contract/environment.ts';
import { parseExpression, printExpression, steps, type Step } from './expression.ts';
import { LEVELS } from './levels.ts';

/** Part of the demonstrations that show what not to write. */
const NEGATIVE_SHARE = 0.05;
/**
 * Unlikelihood pushes on every token of the bad turn, also on those that a good turn begins with; a small weight
 * costs a good turn's `<tool_call>` less than half a percent of its probability.
 */
const NEGATIVE_WEIGHT = -0.2;

/**
 * One call an operation, leftmost first, then the answer. A story's first turn thinks the expression; where the level
 * says so, later turns think what is left. Some indexes give a bad last turn instead, with a negative weight.
 */
export function demonstrate(task: Task, index: number): Demonstration {
  const { expression, told } = task.info as { expression: string; told: boolean };
  const tree = parseExpression(expression);
  const all = steps(tree);
  const thinks = LEVELS.find(({ level }) => level === task.ref.level)?.thinks ?? false;
  const turns = all.map(({ operation, result }, i): DemonstrationTurn => {
    const left = i === 0 ? tree : all[i - 1]!.remaining;
    const worthIt = i === 0 ? told : thinks && i < all.length - 1;
    return {
      ...(worthIt ? { think: printExpression(left) } : {}),
      call: { name: 'calculator', arguments: { expression: printExpression(operation) } },
      observation: String(result),
    };
  });
  turns.push({ answer: String(all.at(-1)!.result) });

  const { split, level, index: taskIndex } = task.ref;
  const random = new RandomStream('calculator', 'demonstration', split, level, taskIndex, index);
  if (random.uniform() >= NEGATIVE_SHARE) return { turns, weight: 1 };
  const at = random.int(0, all.length - 1);
  return { turns: [...turns.slice(0, at), badTurn(all, at, random)], weight: NEGATIVE_WEIGHT };
}

/** Each leaves the good turn's tokens early, so that little of a good turn is made less likely. */
function badTurn(all: readonly Step[], at: number, random: RandomStream): DemonstrationTurn {
  const { operation, result } = all[at]!;
  const expression = printExpression(operation);
  const kinds: DemonstrationTurn[] = [
    { raw: '<tool_call>{"name":"calculator"</tool_call>' },
    { raw: `<tool_call>${expression}</tool_call>` },
    { call: { name: 'search', arguments: { query: expression } } },
    { answer: String(at === 0 ? result : all[at - 1]!.result) },
    { raw: `${expression}=${result}<|im_end|>` },
  ];
  // A first turn that answers is a guess; even a right one did not use the tool.
  return random.pick(kinds);
}
