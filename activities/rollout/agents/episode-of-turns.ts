import type { Episode, RolloutGroup, Turn } from '../../../core/episode/episode.ts';
import type { Dialect, ToolDescription } from '../../../engine/dialect/contract.ts';
import type { StoredTurn } from '../../../gateway/stored-turn.ts';
import { rowOf } from '../../../gateway/turn-tree.ts';
import type { FollowedEpisode } from '../trajectory-parts.ts';

type Said = Pick<Episode, 'tokens' | 'mask' | 'samplerLogprobs' | 'kept' | 'turns'>;

/**
 * An agent's turns, one after the other, as an episode has them: what was sampled with its log-probs and a mask of 1, and what
 * the agent put between with a mask of 0. The prompt is what the agent sent before the first turn.
 */
export function episodeOfTurns(
  path: readonly StoredTurn[],
  dialectFor: (tools: readonly ToolDescription[]) => Pick<Dialect, 'parse'>,
): Said & { promptTokens: number[] } {
  const row = rowOf(path);
  let at = 0;
  const turns = path.map((one, i): Turn => {
    const start = at + (i === 0 ? 0 : one.observed.length);
    at = start + one.tokens.length;
    const action = dialectFor(one.tools).parse(one.text);
    const next = path[i + 1];
    const turn = { start, end: at, text: one.text, action };
    if (!next) return turn;
    const text = next.messages.map(({ content }) => content).join('\n');
    const error = action.kind === 'malformed' ? ('malformed-call' as const) : undefined;
    return { ...turn, observation: { text, ...(error && { error }) } };
  });
  return { ...row, turns };
}

/**
 * The episodes of a group behind one prompt for each task: what all of an agent's episodes begin with. What an episode has of
 * a prompt of its own besides stands before its first turn, with a mask of 0: it is read, and not trained.
 */
export function behindOnePrompt(
  tasks: RolloutGroup['tasks'],
  made: readonly FollowedEpisode[],
): Pick<RolloutGroup, 'tasks' | 'episodes'> {
  const prompts = tasks.map((task, t) => {
    const own = made.filter(({ episode }) => episode.task === t && episode.turns.length > 0);
    return own.length === 0 ? task.promptTokens : own.map((one) => one.task.promptTokens).reduce(common);
  });
  return {
    tasks: tasks.map((task, t) => ({ ...task, promptTokens: prompts[t]! })),
    episodes: made.map(({ task, episode }) =>
      episode.turns.length === 0
        ? episode
        : behind(task.promptTokens.slice(prompts[episode.task]!.length), episode),
    ),
  };
}

function common(one: number[], other: number[]): number[] {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  return one.slice(0, length);
}

const behind = (read: readonly number[], episode: Episode): Episode => ({
  ...episode,
  tokens: [...read, ...episode.tokens],
  mask: [...read.map(() => 0 as const), ...episode.mask],
  samplerLogprobs: [...read.map(() => 0), ...episode.samplerLogprobs],
  ...(episode.kept && { kept: [...read.map(() => []), ...episode.kept] }),
  turns: episode.turns.map((turn) => ({
    ...turn,
    start: turn.start + read.length,
    end: turn.end + read.length,
  })),
});
