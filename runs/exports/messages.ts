import { callByCall } from '../../core/episode/call-by-call.ts';
import type { Episode, Observation, ToolCall, Turn } from '../../core/episode/episode.ts';
import { episodeFactsOf } from '../../core/episode/facts.ts';
import type { Json } from '../../core/json/json.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import { taskRefOf } from '../../core/training/tasks-again.ts';
import type { ChatMessage } from '../../engine/dialect/contract.ts';
import type { FoundEpisode } from '../find/found-episodes.ts';
import { placeOf } from '../episodes/place.ts';

/** A message as OpenAI's API has it: the arguments of a call are text. */
export interface PlainMessage extends Omit<ChatMessage, 'tool_calls'> {
  tool_calls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[];
}

/** What a turn says, without the signs by which its dialect says it. */
export interface TurnText {
  thought: string | null;
  content: string;
}

/** Before a call is what stands before the first of these; a dialect that has none of them writes nothing but the call. */
const CALLS =
  /<tool_call>|<\|python_(?:tag|start)\|>|\[TOOL_CALLS\]|<｜tool▁calls▁begin｜>|<search>|<code>|```/u;
/** A token that ends a turn. */
const END = /(?:<\|[a-z_]+\|>|<｜[^｜]+｜>|<\/s>)\s*$/u;

export function turnTextOf({ text, action }: Pick<Turn, 'text' | 'action'>): TurnText {
  const { thought, rest } = apart(text);
  if (action.kind === 'answer') return { thought, content: action.answer };
  if (action.kind === 'malformed') return { thought: null, content: text.replace(END, '') };
  const call = CALLS.exec(rest);
  return { thought, content: call ? rest.slice(0, call.index).trim() : '' };
}

/** A thought may have been opened by the prompt. */
function apart(text: string): { thought: string | null; rest: string } {
  const close = text.indexOf('</think>');
  if (close < 0) return { thought: null, rest: text };
  const thought = text
    .slice(0, close)
    .replace(/^\s*<think>/u, '')
    .trim();
  return { thought: thought === '' ? null : thought, rest: text.slice(close + '</think>'.length) };
}

/** The episode as a conversation. What a policy is told of a turn that was no call stands where a person would say it. */
export function messagesOf({ task, episode }: Pick<FoundEpisode, 'task' | 'episode'>): PlainMessage[] {
  return [
    { role: 'user', content: task.prompt },
    ...episode.turns.flatMap((turn, i): PlainMessage[] => {
      const { thought, content } = turnTextOf(turn);
      const calls = callsOf(turn, i);
      const message: PlainMessage = {
        role: 'assistant',
        content,
        ...(thought !== null && { reasoning_content: thought }),
        ...(calls.length > 0 && {
          tool_calls: calls.map(({ id, call }) => ({
            id,
            type: 'function',
            function: { name: call.name, arguments: JSON.stringify(call.arguments) },
          })),
        }),
      };
      const results = calls.flatMap(({ id, call, observation }): PlainMessage[] =>
        observation ? [{ role: 'tool', tool_call_id: id, name: call.name, content: observation.text }] : [],
      );
      if (results.length > 0 || !turn.observation) return [message, ...results];
      return [message, { role: 'user', content: turn.observation.text }];
    }),
  ];
}

/** A call of an episode, with what it brought where it was made. */
interface NamedCall {
  id: string;
  call: ToolCall;
  observation: Observation | undefined;
}

/** The calls of a turn, with ids of their own in the episode. */
export const callsOf = (turn: Turn, place: number): NamedCall[] =>
  callByCall(turn).flatMap(({ action, observation }, n) =>
    action.kind === 'call'
      ? [{ id: `call_${place + 1}${n === 0 ? '' : `_${n + 1}`}`, call: action.call, observation }]
      : [],
  );

/** A call that an agent made of the environment's tools itself, which no turn of the policy says. */
export interface ExportedCall {
  name: string;
  arguments: Json;
  /** What it brought, as the agent was told. */
  content: string;
  error: string | null;
  seconds: number | null;
  reward: number | null;
}

/** In the order in which they were begun; null of an episode whose agent had no such tools. */
export const agentCallsOf = ({ calls }: Pick<Episode, 'calls'>): ExportedCall[] | null =>
  calls?.map(({ call, observation: { text, error, seconds, reward } }) => ({
    name: call.name,
    arguments: call.arguments,
    content: text,
    error: error ?? null,
    seconds: seconds ?? null,
    reward: reward ?? null,
  })) ?? null;

/** One line of an export: the conversation, what it was worth, and where it is from. */
export function messagesLine(found: FoundEpisode, reward: Pick<RewardSpec, 'components'>): string {
  const { place, group, task, episode } = found;
  const { ref, tools } = task;
  const [facts] = episodeFactsOf({ ...group, episodes: [episode] }, reward);
  const { hinted, outcome, reason, success, reward: earned, scores, answer } = facts!;
  const calls = agentCallsOf(episode);
  return JSON.stringify({
    messages: messagesOf(found),
    ...(tools && { tools: tools.map(({ described }) => ({ type: 'function', function: described })) }),
    place: placeOf(place),
    task: { ...taskRefOf(ref) },
    sample: episode.sample,
    hinted,
    weights: group.weights,
    outcome,
    reason,
    success,
    reward: earned,
    scores,
    answer,
    // To the letter, as it was sampled.
    turns: episode.turns.map(({ text }) => text),
    ...(calls && { calls }),
  });
}
