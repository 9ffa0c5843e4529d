import { z } from 'zod';
import { didYouMean } from '../../did-you-mean.ts';
import { name } from '../../fields.ts';
import { INITIALIZE } from '../../names.ts';
import type { Refuse } from '../check.ts';
import type { Path } from '../strict.ts';

/** A policy of this run, by the earlier stage that ended with it. */
export const earlierPolicySchema = z
  .strictObject({
    stage: name.describe(
      `An earlier stage: the policy that it ended with. "${INITIALIZE}": the one that the run began with.`,
    ),
  })
  .optional();

export const fromSchema = earlierPolicySchema.describe(
  'The policy that the stage goes on with. Default: that of the stage before.',
);

export type EarlierPolicy = NonNullable<z.output<typeof earlierPolicySchema>>;

/** `at` is the path of what names a policy, and `earlier` the stages before its own. */
export function checkEarlierPolicy(
  named: EarlierPolicy | undefined,
  earlier: readonly { name: string }[],
  at: Path,
  refuse: Refuse,
): void {
  if (!named) return;
  const names = [INITIALIZE, ...earlier.map((stage) => stage.name)];
  if (!names.includes(named.stage))
    refuse([...at, 'stage'], `"${named.stage}" is no earlier stage${didYouMean(named.stage, names)}`);
}
