import type { Split } from '../../../../core/refs.ts';
import { randomOf } from '../../../contract/generated-tasks.ts';
import { makeBoth } from './expand.ts';
import type { Expansion, FormalQuestion } from './expand.ts';
import type { Level } from './levels.ts';
import { FAMILY, peopleOf } from './people.ts';
import { printUnordered } from './query.ts';

// Questions that measure: each comes once, because a measurement in which a task counts twice claims more confidence than it
// has. Of some levels there are few: at the first two thousand in each of these splits.

/** Of a level and split, in each environment; half as many more draws have so many at the scarcest. */
export const EACH_ONCE = 1000;

interface Kept {
  questions: Record<Expansion, FormalQuestion>[];
  seen: Set<string>;
  /** Draws so far: of those of `randomOf`, by index. */
  drawn: number;
}

const kept = new Map<string, Kept>();

/**
 * The questions of both environments at an index below `EACH_ONCE`: of the draws 0, 1, 2 and so on those that neither
 * environment has had before. The first one at a high index takes a few seconds.
 */
export function questionOnce(
  split: Exclude<Split, 'train'>,
  level: Level,
  index: number,
): Record<Expansion, FormalQuestion> {
  const name = `${split} ${level.level}`;
  const known = kept.get(name) ?? { questions: [], seen: new Set(), drawn: 0 };
  kept.set(name, known);
  const { questions, seen } = known;
  while (questions.length <= index) {
    const ref = { environment: FAMILY, split, level: level.level, index: known.drawn++ };
    const both = makeBoth(peopleOf(split), level, randomOf(ref));
    const forms = Object.entries(both).map(([of, { query }]) => `${of} ${printUnordered(query)}`);
    if (forms.some((form) => seen.has(form))) continue;
    for (const form of forms) seen.add(form);
    questions.push(both);
  }
  return questions[index]!;
}
