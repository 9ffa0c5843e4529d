import type { Action, Episode, EpisodeBranch, RolloutGroup, Turn } from '../../../core/episode/episode.ts';
import type { Dialect, ToolDescription } from '../../../engine/dialect/contract.ts';
import type { StoredTurn } from '../../../gateway/stored-turn.ts';
import type { FollowedEpisode } from '../trajectory-parts.ts';

type Said = Pick<Episode, 'tokens' | 'mask' | 'samplerLogprobs' | 'kept' | 'turns' | 'branches'>;

/**
 * An agent's turns as an episode has them, path after path and each turn once: what was sampled with its log-probs and a mask of
 * 1, and what the agent put between with a mask of 0. The prompt is what all paths begin with.
 */
export function episodeOfTurns(
  paths: readonly (readonly StoredTurn[])[],
  dialectFor: (tools: readonly ToolDescription[]) => Pick<Dialect, 'parse'>,
  mostCalls?: number,
): Said & { promptTokens: number[] } {
  const promptTokens = paths.map(([first]) => first!.observed).reduce(common);
  const said: Said = { tokens: [], mask: [], samplerLogprobs: [], turns: [] };
  const kept: number[][] = [];
  const branches: EpisodeBranch[] = [];
  const ends = new Map<string, number>();
  const parse = ({ tools, text }: StoredTurn): Action => dialectFor(tools).parse(text, mostCalls);
  const read = (tokens: readonly number[]): void => {
    said.tokens.push(...tokens);
    said.mask.push(...tokens.map(() => 0 as const));
    said.samplerLogprobs.push(...tokens.map(() => 0));
    kept.push(...tokens.map(() => []));
  };
  for (const path of paths) {
    const own = path.findIndex(({ id }) => !ends.has(id));
    if (said.turns.length > 0)
      branches.push({ start: said.tokens.length, from: own === 0 ? 0 : ends.get(path[own - 1]!.id)! });
    for (let i = own; i < path.length; i++) {
      const one = path[i]!;
      read(i === 0 ? one.observed.slice(promptTokens.length) : one.observed);
      const start = said.tokens.length;
      said.tokens.push(...one.tokens);
      said.mask.push(...one.tokens.map(() => 1 as const));
      said.samplerLogprobs.push(...one.samplerLogprobs);
      kept.push(...(one.kept ?? one.tokens.map(() => [])));
      ends.set(one.id, said.tokens.length);
      said.turns.push(turnOf(one, path[i + 1], { start, end: said.tokens.length }, parse));
    }
  }
  return {
    promptTokens,
    ...said,
    ...(paths.some((path) => path.some((one) => one.kept)) && { kept }),
    ...(branches.length > 0 && { branches }),
  };
}

function turnOf(
  stored: StoredTurn,
  next: StoredTurn | undefined,
  at: Pick<Turn, 'start' | 'end'>,
  parse: (stored: StoredTurn) => Action,
): Turn {
  const action = parse(stored);
  const { text, weights } = stored;
  const turn = { ...at, text, action, ...(weights !== undefined && { weights }) };
  if (!next) return turn;
  const observed = next.messages.map(({ content }) => content).join('\n');
  const error = action.kind === 'malformed' ? ('malformed-call' as const) : undefined;
  const results = next.messages
    .filter(({ role }) => role === 'tool')
    .map(({ content }) => ({ text: content }));
  return {
    ...turn,
    observation: { text: observed, ...(error && { error }) },
    ...(action.kind === 'calls' && results.length === action.calls.length && { results }),
  };
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
  ...(episode.branches && {
    branches: episode.branches.map(({ start, from }) => ({
      start: start + read.length,
      from: from + read.length,
    })),
  }),
});
