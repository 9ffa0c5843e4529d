import { z } from 'zod';
import { amount, count } from '../../fields.ts';
import type { Refuse, SpecEnvironments } from '../check.ts';
import type { Path } from '../strict.ts';
import type { WrittenTasks } from '../tasks.ts';

const weight = amount(10, 'more is another learning rate').default(1);

/** Data that a supervised stage makes before its first round: action synthesis of AgentFounder (Su et al. 2025, arXiv 2509.13310). */
export const synthesisSchema = z
  .strictObject({
    kind: z.literal('actions').describe('Questions of which action to take, made of verified trajectories.'),
    tasks: count(4096, 'an expert plays all of them before the first round')
      .default(256)
      .describe('Tasks of the train split that it is made from, over all levels.'),
    alternatives: count(16, 'a prompt has to have room for them')
      .default(3)
      .describe(
        'Other actions beside the one that was taken, among which to choose at each step of a trajectory. Each was carried out, and is worse.',
      ),
    weights: z
      .strictObject({
        first: weight.describe('Of first actions: the question, and the first call. 0: none are made.'),
        plans: weight.describe('Of plans: the question, and all calls with what is not known left open.'),
        choices: weight.describe(
          'Of choices: a step with its alternatives, the choice, and what came of it.',
        ),
      })
      .prefault({})
      .describe('What the trained tokens of each kind of example weigh.'),
  })
  .optional()
  .describe(
    'Data that the stage makes before its first round, and imitates in the place of an expert: verified before it is kept; see docs/synthesis.md.',
  );

export type SynthesisSpec = NonNullable<z.output<typeof synthesisSchema>>;

/** What synthesis does not go with. `at` is the path of the stage. */
export function checkSynthesis(
  {
    tasks,
    data,
    algorithm,
    synthesis,
  }: {
    tasks: WrittenTasks;
    data?: string | undefined;
    algorithm?: object | undefined;
    synthesis?: SynthesisSpec | undefined;
  },
  at: Path,
  environments: SpecEnvironments,
  refuse: Refuse,
): void {
  if (!synthesis) return;
  const path = [...at, 'synthesis'];
  if (data !== undefined)
    refuse(path, 'makes the data of the stage, and "data" gives it: leave one of them out');
  if (algorithm) refuse(path, 'makes examples to imitate, and no preferences: leave out algorithm');
  const { first, plans, choices } = synthesis.weights;
  if (first + plans + choices === 0)
    refuse([...path, 'weights'], 'are all 0, so that nothing is made: raise one');
  const names = new Set(tasks.map(({ environment }) => environment));
  if (names.size > 1)
    refuse(
      [...at, 'tasks'],
      `are of ${[...names].join(' and ')}, and data is made for the tools of one environment: give each a stage of its own`,
    );
  tasks.forEach(({ environment }, i) => {
    if (environments.get(environment)?.demonstrates === false)
      refuse(
        [...at, 'tasks', i, 'environment'],
        `nothing is made of the tasks of "${environment}": it has no expert whose trajectories can be verified (demonstrate())`,
      );
  });
}
