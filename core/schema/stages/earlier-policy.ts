import { z } from 'zod';
import { didYouMean } from '../../did-you-mean.ts';
import { name } from '../../fields.ts';
import { INITIALIZE } from '../../names.ts';
import { namedIn } from '../../training/earlier-policies.ts';
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

/** Rollout workers load each of them again and again. */
const MOST_IN_A_LEAGUE = 64;

/** One policy of this run, or a league of several, which stay as they are. */
export const opponentSchema = z
  .strictObject({
    stage: z
      .union([name, z.array(name).min(2).max(MOST_IN_A_LEAGUE)])
      .describe(
        `An earlier stage: the policy that it ended with. "${INITIALIZE}": the one that the run began with. Several: a league, of which each step draws one.`,
      ),
    draw: z
      .enum(['uniform', 'hard', 'variance'])
      .optional()
      .describe(
        'How a step draws one of a league, by x, the score of the policy against each in steps so far. uniform, the default: all equally likely. hard: by (1 − x)². variance: by x·(1 − x).',
      ),
  })
  .optional();

export const fromSchema = earlierPolicySchema.describe(
  'The policy that the stage goes on with. Default: that of the stage before.',
);

export type EarlierPolicy = NonNullable<z.output<typeof earlierPolicySchema>>;
export type Opponent = NonNullable<z.output<typeof opponentSchema>>;
export type LeagueDraw = NonNullable<Opponent['draw']>;

/** `at` is the path of what names a policy, and `earlier` the stages before its own. */
export function checkEarlierPolicy(
  named: Opponent | undefined,
  earlier: readonly { name: string }[],
  at: Path,
  refuse: Refuse,
): void {
  if (!named) return;
  const names = [INITIALIZE, ...earlier.map((stage) => stage.name)];
  const stages = namedIn(named);
  if (named.draw && stages.length === 1)
    refuse([...at, 'draw'], 'has one policy to draw: name several stages, or leave it out');
  for (const stage of stages)
    if (!names.includes(stage))
      refuse([...at, 'stage'], `"${stage}" is no earlier stage${didYouMean(stage, names)}`);
  const twice = stages.find((stage, i) => stages.indexOf(stage) !== i);
  if (twice !== undefined)
    refuse([...at, 'stage'], `has "${twice}" more than once, and draws all alike: name each policy once`);
}
