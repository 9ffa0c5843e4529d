import { groupAdvantages } from './advantage.ts';
import { spread } from './method.ts';
import type { CreditGroup, Lesson } from './method.ts';

/** Group-relative advantages, as GRPO has them, for all sampled tokens of each sample. */
export const groupRelative = (groups: readonly CreditGroup[], scale: 'group' | 'none'): Lesson[] =>
  groups.flatMap(({ samples }, group) =>
    spread(
      group,
      samples,
      groupAdvantages(
        samples.map(({ reward }) => reward),
        scale,
      ).advantages,
    ),
  );

/** Two rewards or more, and not all of them equal: only such a group tells samples apart. */
export const tellsApart = ({ samples }: CreditGroup): boolean =>
  !groupAdvantages(
    samples.map(({ reward }) => reward),
    'none',
  ).degenerate;
