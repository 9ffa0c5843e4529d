import type { LeagueDraw } from '../../core/schema/stages/earlier-policy.ts';
import { hardestGoal } from './tiny-spec.ts';
import { selfPlaySpec } from './self-play-spec.ts';

/**
 * A challenger and a solver of one warm start, in seconds: each is trained against the other, which stays as it is. `filter`:
 * the solver's own votes label what it learns, within these bounds, and the challenger is paid by them (R-Zero). `league`:
 * the solver meets the challenger as it was before its stage, too. `draw`: how.
 */
export function opponentsSpec({
  maxSteps = 2,
  filter,
  league = false,
  draw,
}: {
  maxSteps?: number;
  filter?: { min: number; max: number };
  league?: boolean;
  draw?: LeagueDraw;
} = {}) {
  const labels = filter && { labels: 'majority' };
  const { stages, ...spec } = selfPlaySpec({ maxSteps });
  const [warmStart, play] = stages;
  const graduation = { successAtLeast: hardestGoal(33, maxSteps / 2), tasks: 33, everySteps: 2 };
  const one = {
    ...play,
    tasks: [{ environment: 'programs', levels: [1] }],
    numGenerations: 8,
    graduation,
  };
  // One kind of task in both roles, so that a few of them are solved.
  const taught = { ...warmStart, tasks: [{ environment: 'programs', levels: [1, 4] }], updatesPerRound: 120 };
  return {
    ...spec,
    stages: [
      taught,
      {
        ...one,
        name: 'challenger',
        selfPlay: {
          ...play.selfPlay,
          proposals: 4,
          samples: 3,
          learnability: 'r-zero',
          ...labels,
          solver: { stage: 'warm-start' },
        },
      },
      {
        ...one,
        name: 'solver',
        from: { stage: 'warm-start' },
        selfPlay: {
          ...play.selfPlay,
          ...labels,
          ...(filter && { filter }),
          proposer: {
            stage: league ? ['warm-start', 'challenger'] : 'challenger',
            ...(draw && { draw }),
          },
        },
      },
    ] as const,
    // As little as can be: what opponents need has to stay all the same.
    retention: { keepLast: 1, keepBest: 0 },
  };
}
