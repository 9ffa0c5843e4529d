import { z } from 'zod';
import { count } from '../fields.ts';
import type { ModelConfig } from '../model/config.ts';
import type { Refuse } from './check.ts';

/** Of one turn: as many sequences as a block of the decoder's caches holds. */
export const MOST_BEAMS = 64;

/** Log-probs differ by nats: with a penalty of so many nothing is left to weigh. */
const MOST_DIVERSITY = 100;

export const beamsSchema = z
  .strictObject({
    width: count(MOST_BEAMS, 'each has a cache of its own').describe(
      'Beams of a turn, in all groups together.',
    ),
    groups: count(MOST_BEAMS, 'each has a beam of its own')
      .default(1)
      .describe('Groups of as many beams each; with several, each avoids the tokens of those before it.'),
    diversity: z
      .number()
      .min(0)
      .max(MOST_DIVERSITY)
      .default(0)
      .describe(
        'Nats that a token costs for each beam of an earlier group that has it at the same position (λ).',
      ),
  })
  .describe(
    'Turns are searched for by diverse beam search (arXiv 1610.02424), and not sampled. With several samples the first turn of sample i is the best beam of group i. Absent: turns are sampled.',
  );

export type BeamsSpec = z.output<typeof beamsSchema>;

/** What is asked for besides beams, where it bears on them. */
interface BesideBeams {
  samples: number;
  /** That somebody wrote: what a run has is left aside. */
  cuts: readonly ('topK' | 'topP')[];
  served: boolean;
  agent: boolean;
}

export function checkBeams(
  { width, groups, diversity }: BeamsSpec,
  { samples, cuts, served, agent }: BesideBeams,
  refuse: Refuse,
): void {
  if (width % groups > 0)
    refuse(
      ['beams', 'groups'],
      `${groups} groups do not share ${width} beams evenly: give a width that is a multiple of groups`,
    );
  if (groups > 1 && diversity === 0)
    refuse(
      ['beams', 'diversity'],
      `of 0 makes all ${groups} groups the same: give a number above 0, such as 0.5, or leave out groups`,
    );
  if (groups === 1 && diversity > 0)
    refuse(
      ['beams', 'diversity'],
      'tells groups apart, and there is one: give groups of 2 or more, or leave it out',
    );
  if (samples > 1 && samples > groups)
    refuse(
      ['samples'],
      `a search finds the same turn each time, and ${samples} samples need as many groups of beams, where there are ${groups}: raise beams.groups or lower samples`,
    );
  for (const cut of cuts)
    refuse(['sampling', cut], 'cuts what is sampled, and beams are the likeliest already: leave it out');
  if (served)
    refuse(
      ['beams'],
      'are searched for by the decoder of rollout workers, and servers sample here: leave out beams, or the servers',
    );
  if (agent)
    refuse(
      ['beams'],
      'are turns of the policy, and an agent makes the episodes here: leave out beams, or measure without the agent, by "agent": null',
    );
}

/** Keys and values of a turn's beams at most, bytes: a rollout worker has them beside its weights. */
const MOST_CACHE_BYTES = 4 * 2 ** 30;

const inGiB = (bytes: number): string => (bytes / 2 ** 30).toFixed(1);

/**
 * Why a rollout worker has no room for the beams of turns of so many tokens, which is estimated: those that are open, and
 * each group's best, in float32. undefined where it has.
 */
export function problemOfCaches(
  { layers, keyValueHeads, headSize }: ModelConfig,
  { width, groups }: BeamsSpec,
  tokens: number,
): string | undefined {
  const perToken = 2 * layers * keyValueHeads * headSize * Float32Array.BYTES_PER_ELEMENT;
  const bytes = (width + groups) * tokens * perToken;
  if (bytes <= MOST_CACHE_BYTES) return undefined;
  return `beams.width: the keys and values of ${width} beams of ${tokens} tokens take up to ${inGiB(bytes)} GiB, besides those of the prompt, and at most ${inGiB(MOST_CACHE_BYTES)} are allowed: lower it or sampling.maxCompletionTokens`;
}
