import { callByCall } from './call-by-call.ts';
import type { RewardSpec } from '../schema/reward.ts';
import type { Episode, GroupTask, Observation, RolloutGroup, Turn } from './episode.ts';
import { isRewarded } from './outcome.ts';
import type { Outcome } from './outcome.ts';
import { succeeded } from './reward.ts';
import { observedTokens } from './paths.ts';

/** What a policy can be told that it did wrong, by kind. */
export const OBSERVED_ERRORS = ['malformed-call', 'unknown-tool', 'invalid-arguments', 'tool-error'] as const;
type ObservedError = NonNullable<Observation['error']>;

/** One episode in numbers. What is not known of it is null. */
export interface EpisodeFacts {
  /** Index among its group's episodes. */
  episode: number;
  sample: number;
  environment: string;
  split: string;
  level: number;
  index: number;
  retried: boolean;
  /** Sampled with a hint behind the prompt, of a task that others had failed. */
  hinted: boolean;
  /** SHA-256 of the weights that sampled. */
  weights: string;
  status: Episode['status']['kind'];
  outcome: Outcome['kind'];
  /** Why there is no reward, or what cut the episode off. */
  reason: string | null;
  boundary: string | null;
  success: boolean | null;
  reward: number | null;
  turns: number;
  calls: number;
  promptTokens: number;
  sampledTokens: number;
  observationTokens: number;
  /** Of both: those that another sample of its task has sampled or read, and it branched off behind them. */
  inheritedTokens: number;
  /** Of all sampled tokens when sampled, nats. */
  logprobSum: number;
  answer: string | null;
  /** By verifier or rule: what it said, and what that added to the reward. */
  scores: Record<string, number | null>;
  contributions: Record<string, number>;
  /** Calls that reached a tool, by its name. */
  tools: Record<string, number>;
  /** What the policy was told that it did wrong: how often. */
  errors: Partial<Record<ObservedError, number>>;
  /** Wall seconds of its calls, as far as they were measured. */
  toolSeconds: number;
}

/** A row for every episode of a judged group, in their order. */
export const episodeFactsOf = (group: RolloutGroup, reward: Pick<RewardSpec, 'components'>): EpisodeFacts[] =>
  group.episodes.map((episode, i) => ({
    episode: i,
    weights: group.weights,
    ...ofTask(group.tasks[episode.task]!),
    ...ofEpisode(episode, reward),
    ...ofTurns(episode),
  }));

/**
 * Whether a task was asked again with a hint. Of episodes that were sampled nothing else is learnt behind another prompt;
 * those that are relabelled are copies.
 */
export const isHinted = ({ learntBehind }: Pick<GroupTask, 'learntBehind'>): boolean =>
  learntBehind !== undefined;

const ofTask = (task: GroupTask) => ({
  environment: task.ref.environment,
  split: task.ref.split,
  level: task.ref.level,
  index: task.ref.index,
  retried: task.retried === true,
  hinted: isHinted(task),
  promptTokens: task.promptTokens.length,
});

function ofEpisode(episode: Episode, reward: Pick<RewardSpec, 'components'>) {
  const outcome = episode.outcome!;
  const components = isRewarded(outcome) ? outcome.components : [];
  const sampledTokens = episode.mask.reduce<number>((sum, bit) => sum + bit, 0);
  return {
    sample: episode.sample,
    status: episode.status.kind,
    outcome: outcome.kind,
    reason: 'reason' in outcome ? outcome.reason : 'limit' in outcome ? outcome.limit : null,
    boundary: outcome.kind === 'failed' ? outcome.boundary : null,
    success: succeeded(reward.components, outcome),
    reward: isRewarded(outcome) ? outcome.reward : null,
    sampledTokens,
    observationTokens: observedTokens(episode),
    inheritedTokens: episode.inherited?.tokens ?? 0,
    logprobSum: episode.samplerLogprobs.reduce((sum, logprob) => sum + logprob, 0),
    answer: episode.status.kind === 'answered' ? episode.status.answer : null,
    scores: Object.fromEntries(components.map(({ verifier, score }) => [verifier, score])),
    contributions: Object.fromEntries(
      components.map(({ verifier, contribution }) => [verifier, contribution]),
    ),
  };
}

function ofTurns({ turns, status }: Pick<Episode, 'turns' | 'status'>) {
  const single = turns.flatMap(callByCall);
  const observations = single.flatMap(({ observation }) => observation ?? []);
  return {
    turns: turns.length,
    calls: single.filter(({ action }) => action.kind === 'call').length,
    tools: counted(turns.flatMap((turn) => reachedTools(turn, status))),
    errors: counted(observations.flatMap(({ error }) => error ?? [])),
    toolSeconds: observations.reduce((sum, { seconds }) => sum + (seconds ?? 0), 0),
  };
}

/** The tools that a turn has called; one that had not answered when the episode was cut off may be none that there is. */
export function reachedTools(turn: Turn, status: Episode['status']): string[] {
  // Of several calls the first that brought nothing is the one that failed; those behind it were not made.
  const failed = status.kind === 'failed' && !turn.observation ? (turn.results?.length ?? 0) : -1;
  return callByCall(turn).flatMap(({ action, observation }, i) => {
    const known = observation ? observation.error !== 'unknown-tool' : i === failed;
    return action.kind === 'call' && known ? [action.call.name] : [];
  });
}

/** A policy may write any name: a map knows `__proto__` as well as others, and so does what is made of its entries. */
function counted<Name extends string>(
  names: readonly Name[],
): Partial<Record<Name, number>> & Record<string, number> {
  const counts = new Map<Name, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return Object.fromEntries(counts) as Record<Name, number>;
}
