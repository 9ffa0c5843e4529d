import { randomKey } from '../random.ts';
import type { RandomKey } from '../random.ts';
import type { SampledBy } from './episode.ts';

/** What is drawn of an episode: its tokens, the tool that it is made to begin with, and each sample of its judge. */
export type DrawOf = 'rollout' | 'tool-choice' | `judge-${number}`;

/** The key of an episode's draws: `place` is that of its task among all of the step, `sample` its number among the task's. */
export const keyOfDraws = (
  { seed, stage, step }: Pick<SampledBy, 'seed' | 'stage' | 'step'>,
  { place, sample }: { place: number; sample: number },
  what: DrawOf,
): RandomKey => randomKey(seed, what, stage, step, place, sample);
