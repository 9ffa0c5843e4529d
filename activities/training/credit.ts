import { groupAdvantages } from '../../core/algorithms/advantage.ts';
import { giveCredit } from '../../core/algorithms/index.ts';
import type { CreditGroup, Lesson, Sample, SampleTurn } from '../../core/algorithms/method.ts';
import type { Episode, RolloutGroup } from '../../core/episode/episode.ts';
import { trainableReward } from '../../core/episode/outcome.ts';
import type { Outcome } from '../../core/episode/outcome.ts';
import { succeeded } from '../../core/episode/reward.ts';
import type { BatchRequest } from '../../core/requests.ts';
import type { TrainSequence } from './training-batch.ts';

/** A difference of advantages that is smaller is one of rounding. */
const SMALLEST_LESSON = 1e-6;

/** The episodes of one task. */
interface TaskEpisodes {
  promptTokens: number[];
  episodes: Episode[];
}

/**
 * What a step's episodes teach, as the method says: its credit, per sampled token. Episodes without a trainable reward
 * are left out. Those of groups without variance have an advantage of zero and stay, for the loss is a mean over them
 * too, and updates are cut from all; the learner passes over what cannot move it. A step in which nothing moves the
 * weights is none.
 *
 * Of a group that was learnt from before, with other verdicts, every member whose advantage changed is taught the
 * difference, also where only the group's mean and deviation did that: what was taught is taken back, so that all
 * lessons together are those of the last verdicts.
 */
export function trainingSequences(
  groups: readonly RolloutGroup[],
  { algorithm, plan, reward }: Pick<BatchRequest, 'algorithm' | 'plan' | 'reward'>,
): { sequences: TrainSequence[]; degenerateGroups: number } {
  const tasks = groups.flatMap((group) =>
    group.tasks.map(({ promptTokens }, task): TaskEpisodes => ({
      promptTokens,
      episodes: group.episodes.filter((episode) => episode.task === task),
    })),
  );
  const now = ({ episodes }: TaskEpisodes): CreditGroup => ({
    samples: episodes.map((episode) => sampleOf(episode, episode.outcome, reward)),
    greedy: null,
  });
  const before = ({ episodes }: TaskEpisodes): CreditGroup => ({
    samples: episodes.map((episode) => sampleOf(episode, episode.learntAs, reward)),
    greedy: null,
  });
  const isLate = ({ episodes }: TaskEpisodes): boolean => episodes.some(({ learntAs }) => learntAs);
  const fresh = tasks.filter((task) => !isLate(task));
  const credited = fresh.map(now);
  const lessonsOf = new Map<TaskEpisodes, Lesson[]>(fresh.map((task) => [task, []]));
  for (const lesson of giveCredit(algorithm, credited)) lessonsOf.get(fresh[lesson.group]!)!.push(lesson);
  for (const task of tasks.filter(isLate)) {
    lessonsOf.set(task, changed(giveCredit(algorithm, [now(task)]), giveCredit(algorithm, [before(task)])));
  }
  const sequences = tasks.flatMap((task) =>
    lessonsOf.get(task)!.map((lesson) => sequenceOf(task, lesson, isLate(task))),
  );
  const teaches = plan.movesAll || [...lessonsOf.values()].flat().some(isMoving);
  return {
    sequences: teaches ? sequences : [],
    degenerateGroups: credited.filter(isDegenerate).length,
  };
}

/** Fewer than two rewards, or all of them equal: nothing can be told apart. */
const isDegenerate = ({ samples }: CreditGroup): boolean =>
  groupAdvantages(
    samples.map(({ reward }) => reward),
    'none',
  ).degenerate;

const isMoving = ({ advantages }: Lesson): boolean => advantages.some((advantage) => advantage !== 0);

/** What lessons now say beyond what they said before; each has one advantage for all tokens of its sample. */
function changed(now: readonly Lesson[], before: readonly Lesson[]): Lesson[] {
  const saidOf = (lessons: readonly Lesson[], sample: number): number[] | undefined =>
    lessons.find((lesson) => lesson.sample === sample)?.advantages;
  const samples = [...new Set([...now, ...before].map(({ sample }) => sample))].toSorted((a, b) => a - b);
  return samples
    .map((sample): Lesson => {
      const [is, was] = [saidOf(now, sample), saidOf(before, sample)];
      const advantages = (is ?? was)!.map((_, i) => (is?.[i] ?? 0) - (was?.[i] ?? 0));
      return { group: 0, sample, advantages };
    })
    .filter(({ advantages }) => advantages.some((lesson) => Math.abs(lesson) > SMALLEST_LESSON));
}

function sampleOf(episode: Episode, outcome: Outcome | undefined, reward: BatchRequest['reward']): Sample {
  return {
    reward: outcome ? trainableReward(outcome, reward.truncated) : null,
    success: outcome ? succeeded(reward.components, outcome) : null,
    mask: episode.mask,
    turns: turnsOf(episode),
    rollout: episode.logprobs,
    scores: {},
    truncated: outcome?.kind === 'truncated',
  };
}

const turnsOf = ({ turns }: Episode): SampleTurn[] =>
  turns.map(({ start, end }, i) => ({
    start,
    end,
    reward: 0,
    state: i === 0 ? '' : (turns[i - 1]!.observation?.text ?? ''),
  }));

function sequenceOf({ promptTokens, episodes }: TaskEpisodes, lesson: Lesson, late: boolean): TrainSequence {
  const { tokens, mask, logprobs, kept } = episodes[lesson.sample]!;
  const nothing = promptTokens.map(() => 0);
  return {
    tokens: [...promptTokens, ...tokens],
    mask: [...nothing, ...mask],
    advantages: [...nothing, ...lesson.advantages],
    logprobs: [...nothing, ...logprobs],
    ...(kept && { kept: [...nothing.map(() => []), ...kept] }),
    ...(late && { late }),
  };
}
