import type { TrainingSample } from '../../core/algorithms/training-sample.ts';
import { randomKey } from '../../core/random.ts';
import type { LocalPolicy } from '../../engine/policy.ts';
import type { Script } from './calculator-scripts.ts';

/** All samples of all scripts at once: as many tokens in turn as the script has, whatever they are. */
export function rollOut(
  policy: LocalPolicy,
  scripts: readonly Script[],
  samples: number,
  step: number,
): Promise<TrainingSample[]> {
  return Promise.all(
    scripts.flatMap((script, task) =>
      Array.from({ length: samples }, (_, sample) => episode(policy, script, `${step}/${task}/${sample}`)),
    ),
  );
}

async function episode(
  policy: LocalPolicy,
  { prefix, turns }: Script,
  session: string,
): Promise<TrainingSample> {
  const zeros = (count: number): number[] => Array.from({ length: count }, () => 0);
  const mask = zeros(prefix.length);
  const logprobs = zeros(prefix.length);
  const continuation: number[] = [];
  for (const { sampled, observation } of turns) {
    const drawn = await turn(policy, session, prefix, continuation, mask.slice(prefix.length), sampled);
    continuation.push(...drawn.tokens, ...observation);
    mask.push(...drawn.tokens.map(() => 1), ...zeros(observation.length));
    logprobs.push(...drawn.samplerLogprobs, ...zeros(observation.length));
  }
  policy.release(session);
  // Rewards are not what is measured: half of the samples did well.
  const advantage = randomKey(session).k0 % 2 === 0 ? 1 : -1;
  return {
    tokens: [...prefix, ...continuation],
    mask,
    streams: { advantages: mask.map((bit) => bit * advantage), samplerLogprobs: logprobs },
  };
}

export function turn(
  policy: LocalPolicy,
  session: string,
  prefix: number[],
  continuation: readonly number[],
  mask: readonly number[],
  count: number,
) {
  return policy.sample({
    session,
    prefix,
    continuation,
    mask,
    maxNewTokens: count,
    stopTokens: [],
    sampling: { temperature: 1, topK: 0, topP: 1 },
    key: randomKey(session),
  });
}
