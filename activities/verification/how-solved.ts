import type { Episode, RolloutGroup } from '../../core/episode/episode.ts';
import { callByCall } from '../../core/episode/call-by-call.ts';
import { succeeded } from '../../core/episode/reward.ts';
import { canonicalJson } from '../../core/json/canonical-json.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import { triesOf } from '../../core/statistics/pass-at-k.ts';
import { addByArm, addHowSolved, noneSolved } from '../../core/training/how-solved.ts';
import type { ArmHowSolved, HowSolved } from '../../core/training/how-solved.ts';

/** How the judged episodes of a group that measures went about their tasks, by arm. */
export const howSolvedOf = (reward: RewardSpec, { tasks, episodes }: RolloutGroup): ArmHowSolved[] =>
  addByArm(
    tasks.map(({ ref: { environment, level } }, task) => ({
      arm: { environment, level },
      ...ofTask(
        reward,
        episodes.filter((episode) => episode.task === task),
      ),
    })),
  );

function ofTask(reward: RewardSpec, samples: readonly Episode[]): HowSolved {
  const judged = samples.flatMap((episode) => {
    const solved = succeeded(reward.components, episode.outcome!);
    return solved === null ? [] : [ofEpisode(episode, solved)];
  });
  const sum = addHowSolved(judged);
  return sum.episodes === 0 ? sum : { ...sum, tries: { [triesOf(sum.solved, sum.episodes)]: 1 } };
}

function ofEpisode({ mask, turns, status }: Episode, solved: boolean): HowSolved {
  const tokens = mask.reduce<number>((sum, bit) => sum + bit, 0);
  const calls = turns
    .flatMap(callByCall)
    .flatMap(({ action, observation }) =>
      action.kind === 'call'
        ? [{ call: action.call, answered: observation !== undefined, error: observation?.error }]
        : [],
    );
  const multiStep = new Set(calls.map(({ call }) => canonicalJson([call.name, call.arguments]))).size >= 2;
  const erred = turns.some(({ observation }) => observation?.error !== undefined);
  const over = status.kind === 'answered' || status.kind === 'ended';
  const compliant = over && turns.every(({ action }) => action.kind !== 'malformed');
  return {
    ...noneSolved(),
    episodes: 1,
    tokens,
    compliant: Number(compliant),
    calls: calls.length,
    goodCalls: calls.filter(({ answered, error }) => answered && !error).length,
    unknownTools: calls.filter(({ error }) => error === 'unknown-tool').length,
    multiStep: Number(multiStep),
    erred: Number(erred),
    ...(solved && {
      solved: 1,
      solvedTurns: turns.length,
      solvedCalls: calls.length,
      solvedTokens: tokens,
      multiStepSolved: Number(multiStep),
      recovered: Number(erred),
    }),
  };
}
