import type { EpisodeStatus } from '../core/episode/episode.ts';
import type { AgentEpisode } from './agent-episode.ts';
import type { Row } from './turn-tree.ts';

/** How an agent's episode ended; `row` has the tokens of its first branch where it did not fail. */
export interface AgentRun {
  status: Extract<EpisodeStatus, { kind: 'answered' | 'ended' | 'truncated' | 'failed' }>;
  row: Row | null;
  /** It failed because somebody else ended it, or it was not there: started over, it finds the turns that it has had. */
  killed?: true;
}

/**
 * What became of an episode whose agent has ended, with a problem or without. After a limit of the spec no agent can go on,
 * so one that then fails was cut by the limit.
 */
export function runOf(episode: AgentEpisode, problem: string | null, answer: string | null): AgentRun {
  const { ended } = episode;
  const limit = ended === 'turns' || ended === 'tokens' ? ended : null;
  if (problem !== null && limit === null) return failedRun(problem);
  const rows = episode.rows();
  if (rows.length === 0) return failedRun(problem ?? 'it has asked the policy for nothing');
  if (rows.length > 1 && episode.options.branches !== 'train') {
    return failedRun(
      `its turns have ${rows.length} branches, and this run learns from one: let the agent send back what it was told as it is, or set agent.branches to train`,
    );
  }
  const row = rows[0]!;
  if (problem === null && answer !== null) return { status: { kind: 'answered', answer }, row };
  return { status: limit === null ? { kind: 'ended' } : { kind: 'truncated', limit }, row };
}

export const failedRun = (reason: string): AgentRun => ({
  status: { kind: 'failed', boundary: 'environment', reason: `The agent failed: ${reason}` },
  row: null,
});
