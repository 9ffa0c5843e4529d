import type { Episode, RolloutGroup } from '../../core/episode/episode.ts';
import { armName } from '../../core/names.ts';
import { isToolFailure, noOutcomes, trainableReward } from '../../core/episode/outcome.ts';
import type { ArmTally } from '../../core/requests/verification.ts';
import { succeeded } from '../../core/episode/reward.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import type { GroupCounts } from '../../core/training/evaluation.ts';
import { taskRefOf } from '../../core/training/tasks-again.ts';
import { inTurns } from '../../engine/in-pieces.ts';
import { countBehaviour } from './behaviour.ts';
import { howSolvedOf } from './how-solved.ts';

/** What a stage needs to know of a judged group. */
export const tally = async (
  reward: RewardSpec,
  group: RolloutGroup,
  signal?: AbortSignal,
): Promise<GroupCounts> => ({
  ...tallyOutcomes(reward, group),
  behaviour: await inTurns(countBehaviour(reward, group), signal),
  ...(group.tasks.some(({ ref }) => ref.split !== 'train') && { conduct: howSolvedOf(reward, group) }),
});

/** What became of its episodes, without how they went about it. */
export function tallyOutcomes(
  reward: RewardSpec,
  group: RolloutGroup,
): Omit<GroupCounts, 'behaviour' | 'conduct'> {
  const outcomes = noOutcomes();
  const arms = new Map<string, ArmTally>();
  let inheritedTokens = 0;
  const byOthers = new Map<string, number>();
  const perTask = group.tasks.map(() => ({ successes: 0, trials: 0 }));
  const result = { rewardSum: 0, rewardCount: 0, sampledTokens: 0, sampledLogprob: 0, turns: 0 };
  for (const episode of group.episodes) {
    const outcome = episode.outcome!;
    outcomes[outcome.kind]++;
    const { turns = 0, tokens = 0 } = episode.inherited ?? {};
    result.sampledTokens += sampledIn(episode.mask.slice(tokens));
    inheritedTokens += sampledIn(episode.mask.slice(0, tokens));
    // 0 where a token was not sampled.
    result.sampledLogprob += episode.samplerLogprobs.slice(tokens).reduce((sum, logprob) => sum + logprob, 0);
    result.turns += episode.turns.length - turns;
    for (const { start, end, weights } of episode.turns)
      if (weights !== undefined) byOthers.set(weights, (byOthers.get(weights) ?? 0) + end - start);
    const earned = trainableReward(outcome, reward.truncated);
    if (earned !== null) {
      result.rewardSum += earned;
      result.rewardCount++;
    }
    const success = succeeded(reward.components, outcome);
    if (success === null) continue;
    const { ref, retried } = group.tasks[episode.task]!;
    const arm = { environment: ref.environment, level: ref.level };
    const sum: ArmTally = arms.get(armName(arm)) ?? { arm, successes: 0, trials: 0 };
    const chosen = retried ?? group.grows !== undefined;
    if (!chosen) arms.set(armName(arm), sum);
    for (const counted of chosen ? [perTask[episode.task]!] : [sum, perTask[episode.task]!]) {
      counted.trials++;
      if (success) counted.successes++;
    }
    if (!chosen && isToolFailure(outcome)) sum.toolFailures = (sum.toolFailures ?? 0) + 1;
  }
  // An evaluation's tasks are never trained on.
  const tried = group.tasks.flatMap(({ ref }, i) => {
    const { successes, trials } = perTask[i]!;
    // Nor are made ones drawn again by their coordinates, which are those of another task.
    const ofTraining = group.grows === undefined && ref.split === 'train' && ref.source === undefined;
    return ofTraining && successes < trials ? [{ ref, successes, trials }] : [];
  });
  return {
    ...result,
    ...(inheritedTokens > 0 && { inheritedTokens }),
    ...(byOthers.size > 0 && {
      sampledBy: Array.from(byOthers, ([weights, tokens]) => ({ weights, tokens })),
    }),
    arms: [...arms.values()],
    outcomes,
    ...(tried.length > 0 && { tried: tried.map(({ ref, ...counts }) => ({ ...taskRefOf(ref), ...counts })) }),
  };
}

const sampledIn = (mask: Episode['mask']): number => mask.reduce<number>((sum, bit) => sum + bit, 0);
