import type { Episode, GroupTask } from '../../core/episode/episode.ts';
import { succeeded } from '../../core/episode/reward.ts';
import { GradusError } from '../../core/errors.ts';
import type { MadeTaskRef } from '../../core/refs.ts';
import type { VaryFailuresRequest } from '../../core/requests/from-failures.ts';
import type { Dialect } from '../../engine/dialect/contract.ts';
import type { DemonstrationTurn } from '../../environments/contract/environment.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import type { ToolFacts } from '../../environments/host/facts.ts';
import type { HostCaller } from '../../environments/host/hosted-environment.ts';
import type { Speaking } from '../rollout/policies.ts';
import { verifyAll } from '../verification/verify-episodes.ts';
import { referenceEpisode } from './reference-episode.ts';

/** How many of an expert's ways are looked at for one that is to be imitated. */
const MOST_WAYS = 32;

/** What an expert did, and that it is a success. */
export interface VerifiedSolution {
  task: GroupTask;
  episode: Episode;
  /** Its turns as the expert writes them, and the tools of the task where they are its own. */
  turns: readonly DemonstrationTurn[];
  tools?: readonly ToolFacts[];
}

/** What was played as an episode, which nobody has sampled, with its outcome and whether that is a success. */
export async function verifiedReference(
  environments: Environments,
  ref: MadeTaskRef,
  played: Awaited<ReturnType<typeof referenceEpisode>>,
  reward: VaryFailuresRequest['reward'],
  asker: HostCaller,
): Promise<{ episode: Episode; success: boolean | null }> {
  const samplerLogprobs = played.tokens.map(() => 0);
  const episode: Episode = { sample: 0, task: 0, samplerLogprobs, ...played };
  const [outcome] = await verifyAll(environments, [{ ref, episode }], reward, asker);
  return {
    episode: { ...episode, outcome: outcome! },
    success: succeeded(reward.components, outcome!),
  };
}

/** The episode of an expert that verifiers pass, or why there is none. */
export async function verifiedSolution(
  environments: Environments,
  dialectFor: (environment: Speaking) => Dialect,
  ref: MadeTaskRef,
  id: string,
  { reward, limits }: Pick<VaryFailuresRequest, 'reward' | 'limits'>,
  asker: HostCaller,
): Promise<VerifiedSolution | { reason: string }> {
  const environment = environmentOf(environments, ref.environment);
  try {
    const { prompt, tools, demonstration } = await toImitate();
    const dialect = dialectFor(tools ? { tools } : environment);
    const { turns } = demonstration;
    const played = await referenceEpisode(environment, dialect, { ref, tools, turns }, id, asker);
    const { length } = played.tokens;
    if (turns.length > limits.maxTurns || length > limits.maxCompletionTokens)
      return { reason: `takes ${turns.length} turns and ${length} tokens, more than an episode has` };
    const { episode, success } = await verifiedReference(environments, ref, played, reward, asker);
    if (success !== true)
      return {
        reason: `what an expert does is no success: ${JSON.stringify(episode.outcome).slice(0, 500)}`,
      };
    const promptTokens = dialect.promptTokens([{ role: 'user', content: prompt }]);
    const task: GroupTask = { ref, prompt, promptTokens, ...(tools && { tools }) };
    return { task, episode, turns, ...(tools && { tools }) };
  } catch (error) {
    if (!(error instanceof GradusError) || asker.signal.aborted) throw error;
    return { reason: error.message };
  }

  /** Some of an expert's ways show what not to do. */
  async function toImitate() {
    for (let way = 0; way < MOST_WAYS; way++) {
      const [shown] = await environment.demonstrations([{ ref, index: way }], asker);
      if (shown instanceof GradusError) throw shown;
      if (shown!.demonstration.weight > 0) return shown!;
    }
    throw new GradusError('environment', 'demonstration', `${ref.environment} shows only what not to do`);
  }
}
