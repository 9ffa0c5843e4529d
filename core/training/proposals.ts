import { armName } from '../names.ts';
import type { BlobRef } from '../refs.ts';
import type { Arm } from '../schema/tasks.ts';
import type { SelfPlaySpec } from '../schema/stages/self-play.ts';
import type { Json } from '../json/json.ts';
import { countsOf, withTasks } from './task-source.ts';
import type { NewTask, TaskSource } from './task-source.ts';

/** What an environment said of a proposal, and the arm of the task that it would be; null: nobody could say. */
export type CheckedProposal =
  | { kind: 'accepted'; arm: Arm; proposal: Json; canonical: string; like: string }
  | { kind: 'invalid' | 'malformed' | 'set-aside'; reason: string }
  | null;

/** What became of it. */
export type StepProposal =
  /** `task`: its place among those that the step has made; `first`: no other proposal of the step made it before. */
  | { kind: 'made'; task: number; first: boolean; like: string }
  /** The source has it already. */
  | { kind: 'known' }
  | { kind: 'invalid' | 'malformed' | 'set-aside'; reason: string }
  | { kind: 'unjudged' };

/** A place in the source. */
export interface MadePlace extends Arm {
  index: number;
}

export interface StepProposals {
  /** With the tasks of the step; null where there is none yet. */
  source: BlobRef | null;
  counts: Record<string, number>;
  /** Those of the step, in the order of their proposals. */
  made: MadePlace[];
  /** By group and episode. */
  episodes: StepProposal[][];
}

/** Sorts out what is new. Two that are the same task, however they are written, are one; none that the source has is made again. */
export function sortOut(
  source: TaskSource,
  checked: readonly (readonly CheckedProposal[])[],
  { step, mostTasks }: { step: number; mostTasks: number },
): Omit<StepProposals, 'source'> & { grown: TaskSource } {
  const nameOf = (arm: Arm, canonical: string): string => JSON.stringify([armName(arm), canonical]);
  const known = new Set(
    Object.entries(source.arms).flatMap(([arm, tasks]) =>
      tasks.map(({ canonical }) => JSON.stringify([arm, canonical])),
    ),
  );
  const added: NewTask[] = [];
  const places = new Map<string, number>();
  const became = (one: CheckedProposal): StepProposal => {
    if (one === null) return { kind: 'unjudged' };
    if (one.kind !== 'accepted') return one;
    const { arm, proposal, canonical, like } = one;
    const name = nameOf(arm, canonical);
    if (known.has(name)) return { kind: 'known' };
    const before = places.get(name);
    if (before !== undefined) return { kind: 'made', task: before, first: false, like };
    places.set(name, added.length);
    added.push({ arm, proposal, canonical, step });
    return { kind: 'made', task: added.length - 1, first: true, like };
  };
  const episodes = checked.map((group) => group.map(became));
  const grown = withTasks(source, added, mostTasks);
  const ends = countsOf(grown);
  // The newest of an arm are at its end, in their order.
  const left = new Map<string, number>();
  for (const { arm } of added) left.set(armName(arm), (left.get(armName(arm)) ?? 0) + 1);
  const made = added.map(({ arm }): MadePlace => {
    const behind = left.get(armName(arm))!;
    left.set(armName(arm), behind - 1);
    return { ...arm, index: ends[armName(arm)]! - behind };
  });
  return { grown, counts: ends, made, episodes };
}

/** Samples that solved a task, of those of which it can be said; by labels of the majority, votes for its answer, of all. */
export interface Solved {
  successes: number;
  trials: number;
}

/**
 * How much there is to learn from a task, in [0, 1], by the part of the solver's samples that solve it. Absolute Zero, eq. 4:
 * 1 − p, and nothing where no sample solves it. R-Zero, eq. 3: most where half of them do.
 */
export function learnabilityOf({ successes, trials }: Solved, by: SelfPlaySpec['learnability']): number {
  const p = successes / trials;
  if (by === 'r-zero') return 1 - 2 * Math.abs(p - 1 / 2);
  return p === 0 ? 0 : 1 - p;
}

/** By what proposals are rewarded. */
export type ProposalRewards = Pick<
  SelfPlaySpec,
  | 'learnability'
  | 'repetitionPenalty'
  | 'unsolvedReward'
  | 'leastValidReward'
  | 'invalidReward'
  | 'malformedReward'
>;

/**
 * What each proposal of a step is rewarded, by group and episode; null where nothing can be said: it was set aside, or no
 * sample of its task could be judged. What resembles others of the step loses the share that these are of all its proposals
 * (R-Zero, section 3.2), down to the least that a valid one is paid where there is such a bound.
 */
export function rewardProposals(
  episodes: readonly (readonly StepProposal[])[],
  solved: readonly Solved[],
  how: ProposalRewards,
): (number | null)[][] {
  const all = episodes.flat();
  const alike = new Map<string, number>();
  for (const one of all) if (one.kind === 'made') alike.set(one.like, (alike.get(one.like) ?? 0) + 1);
  const rewardOf = (one: StepProposal): number | null => {
    switch (one.kind) {
      case 'made': {
        const { successes, trials } = solved[one.task]!;
        if (trials === 0) return null;
        const share = (alike.get(one.like)! - 1) / all.length;
        const worth =
          successes === 0
            ? (how.unsolvedReward ?? 0)
            : learnabilityOf({ successes, trials }, how.learnability);
        const reward = worth - how.repetitionPenalty * share;
        return how.leastValidReward === undefined ? reward : Math.max(how.leastValidReward, reward);
      }
      case 'known':
      case 'invalid':
        return how.invalidReward;
      case 'malformed':
        return how.malformedReward;
      default:
        return null;
    }
  };
  return episodes.map((group) => group.map(rewardOf));
}
