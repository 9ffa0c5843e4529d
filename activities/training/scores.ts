import { isTrainable } from '../../core/algorithms/sample.ts';
import { taskGroups } from '../../core/algorithms/task-group.ts';
import type { TokenScores } from '../../core/algorithms/scores.ts';
import type { RolloutGroup } from '../../core/episode/episode.ts';
import type { ScoreRequest } from '../../core/requests/batch.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import { DEFAULT_COMPUTE } from '../../engine/learner/contract.ts';
import type { Learner, TrainState } from '../../engine/learner/contract.ts';
import type { Weights } from '../../core/model/config.ts';
import { packBatch } from './training-batch.ts';

/** A batch of tokens that are to be scored, and where the completions are that were asked about. */
function layOut(groups: readonly RolloutGroup[], reward: RewardSpec) {
  const episodes = taskGroups(groups).flatMap(({ promptTokens, samples }) =>
    samples.filter((episode) => isTrainable(episode, reward)).map((episode) => ({ promptTokens, episode })),
  );
  const batch = packBatch(
    episodes.map(({ promptTokens, episode: { tokens, mask, kept } }) => {
      const nothing = promptTokens.map(() => 0);
      return {
        tokens: [...promptTokens, ...tokens],
        mask: [...nothing, ...mask],
        streams: {},
        ...(kept && { kept: [...nothing.map(() => []), ...kept] }),
      };
    }),
    { minibatch: 1, epochs: 0, seed: 0 },
  );
  const completionsOf = (perToken: Float32Array): Float32Array => {
    const completions = new Float32Array(
      episodes.reduce((sum, { episode }) => sum + episode.tokens.length, 0),
    );
    let at = 0;
    episodes.forEach(({ promptTokens, episode }, i) => {
      const start = batch.offsets[i]! + promptTokens.length;
      completions.set(perToken.subarray(start, start + episode.tokens.length), at);
      at += episode.tokens.length;
    });
    return completions;
  };
  return { batch, completionsOf };
}

/** `state` is the policy that the step starts from, with its critic; `reference` is there where it is asked for. */
export async function scoreEpisodes(
  learner: Learner,
  { state, reference }: { state: TrainState; reference: Weights | undefined },
  groups: readonly RolloutGroup[],
  {
    reward,
    scores: asked,
    from,
    compute = DEFAULT_COMPUTE,
  }: Pick<ScoreRequest, 'reward' | 'scores' | 'from' | 'compute'>,
  signal: AbortSignal,
): Promise<TokenScores> {
  const { batch, completionsOf } = layOut(groups, reward);
  if (batch.tokens.length === 0) {
    return Object.fromEntries(asked.map((name) => [name, new Float32Array(0)]));
  }
  const own = await learner.score(
    state,
    batch,
    {
      ...(asked.includes('values') && { values: true as const }),
      ...(asked.includes('policy') && { logprobs: from }),
    },
    compute,
    signal,
  );
  const others =
    reference &&
    (await learner.score(
      { ...withoutAdapter(state), weights: reference },
      batch,
      { logprobs: from },
      compute,
      signal,
    ));
  return {
    ...(own.values && { values: completionsOf(own.values) }),
    ...(own.logprobs && { policy: completionsOf(own.logprobs) }),
    ...(others?.logprobs && { reference: completionsOf(others.logprobs) }),
  };
}

const withoutAdapter = ({ config, weights }: TrainState): TrainState => ({
  config,
  weights,
  firstMoments: new Map(),
  secondMoments: new Map(),
  updates: 0,
});
