import { GradusError } from '../../core/errors.ts';
import type { Arm } from '../../core/schema/tasks.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import type { HostCaller } from '../../environments/host/hosted-environment.ts';

/** Held-out and test tasks of a level that nothing made for training may ask, from the first one on: evaluations draw these. */
const MEASURED = 512;

/** Equal for two tasks that ask the same. */
export const promptName = (environment: string, prompt: string): string =>
  JSON.stringify([environment, prompt]);

/** What the tasks ask that evaluations begin with: an environment that is wrong about a split must not train on them. */
export async function measuredPrompts(
  environments: Environments,
  arms: readonly Arm[],
  asker: HostCaller,
): Promise<Set<string>> {
  const prompts = new Set<string>();
  for (const { environment: name, level } of arms)
    for (const split of ['heldout', 'test'] as const) {
      const environment = environmentOf(environments, name);
      const count = Math.min(MEASURED, environment.taskCount(split, level));
      const refs = Array.from({ length: count }, (_, index) => ({ environment: name, split, level, index }));
      for (const task of await environment.tasks(refs, asker))
        if (!(task instanceof GradusError)) prompts.add(promptName(name, task.prompt));
    }
  return prompts;
}
