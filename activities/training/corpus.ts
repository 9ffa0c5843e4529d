import { parseAction } from '../../engine/dialect/gradus/parse-action.ts';
import { malformedObservation } from '../../engine/dialect/malformed.ts';
import type { ToolDescription } from '../../engine/dialect/contract.ts';
import { promptTextWithTools, turnText } from '../../engine/dialect/gradus/render.ts';
import type { Demonstration, PlainEnvironment } from '../../environments/contract/environment.ts';

/**
 * Text to train a tokenizer on: `tasksPerLevel` train tasks of each level with the expert's turns, as the policy would
 * see and write them. Tools do not run, so their observations are left out. The same for the same arguments.
 */
export function* demonstrationCorpus(
  environments: readonly PlainEnvironment[],
  tasksPerLevel: number,
): Generator<string> {
  for (const environment of environments) {
    for (const level of environment.levels) {
      const count = Math.min(tasksPerLevel, environment.taskCount('train', level));
      for (let index = 0; index < count; index++) {
        const task = environment.task({ environment: environment.name, split: 'train', level, index });
        const text = corpusText(task.prompt, environment.demonstrate(task, 0));
        if (text !== null) yield text;
      }
    }
  }
}

/** What a demonstration adds to such a text; null for nothing. `described`: tools that its prompt describes. */
export function corpusText(
  prompt: string,
  { turns, weight }: Demonstration,
  described: readonly ToolDescription[] = [],
): string | null {
  if (weight > 0) return promptTextWithTools(prompt, described) + turns.map(turnText).join('');
  // Bad turns are not worth tokens of their own, what the policy reads after them is.
  const action = parseAction(turnText(turns.at(-1)!));
  return action.kind === 'malformed' ? malformedObservation(action.reason).text : null;
}
