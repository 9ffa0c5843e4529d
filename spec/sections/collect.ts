import { z } from 'zod';
import { count, name, runName } from '../../core/fields.ts';
import type { Refuse } from '../check.ts';
import { didYouMean } from '../strict.ts';
import type { Path } from '../strict.ts';

const step = count(1e6, 'no stage has more steps');

/** Where a stage's episodes come from. */
export const collectSchema = z
  .discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('on-policy') }).describe('The policy that learns samples them.'),
    z
      .strictObject({
        kind: z.literal('stored'),
        run: runName.optional().describe('Default: this run.'),
        stage: name.describe('Whose episodes they are; of this run an earlier one.'),
        steps: z
          .strictObject({ from: step.default(1), to: step.optional() })
          .optional()
          .describe('Both included. Default: all.'),
      })
      .describe(
        "Episodes of the stage's tasks that an earlier stage or another run has left, in an order drawn by the seed, again and again. Nothing is sampled: numGenerations, groupsPerWorkflow and retryFailures say nothing then.",
      ),
  ])
  .prefault({ kind: 'on-policy' });

export type CollectSpec = z.output<typeof collectSchema>;

/** `earlier` are the stages of the run before this one. */
export function checkCollect(
  collect: CollectSpec,
  verified: boolean,
  earlier: readonly { kind: string; name: string }[],
  at: Path,
  refuse: Refuse,
): void {
  if (collect.kind !== 'stored') return;
  if (verified)
    refuse(at, 'stored episodes climb no ladder of verifiers: leave it out, or leave out verification');
  const { run, stage, steps } = collect;
  if (steps?.to !== undefined && steps.to < steps.from)
    refuse([...at, 'steps', 'to'], `is before from = ${steps.from}`);
  const names = earlier.filter(({ kind }) => kind === 'rl').map((one) => one.name);
  if (run === undefined && !names.includes(stage))
    refuse(
      [...at, 'stage'],
      `"${stage}" is no earlier stage with episodes${didYouMean(stage, names)}; one of another run needs its run`,
    );
}
