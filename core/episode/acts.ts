import { callByCall } from './call-by-call.ts';
import type { Observation, ToolCall, Turn } from './episode.ts';

/** A call that a session has taken, and what it led to: what is played again where the session has to come back. */
export interface Act {
  call: ToolCall;
  /** The number of its turn in the episode, from 1. */
  turn: number;
  /** Its number among the calls of its turn, from 2; absent of the first. */
  nth?: number;
  observation: Pick<Observation, 'text' | 'error' | 'reward' | 'done' | 'images'>;
}

/** Mistakes that are told before a call reaches its session. */
const BEFORE: readonly Observation['error'][] = ['malformed-call', 'unknown-tool', 'invalid-arguments'];

/** The calls of an episode that have reached its session, in order. `tools` are those of the task. */
export function actsOf(
  turns: readonly Pick<Turn, 'action' | 'observation' | 'results'>[],
  tools: readonly { name: string; ofSession: boolean }[],
): Act[] {
  const ofSession = new Set(tools.flatMap((tool) => (tool.ofSession ? [tool.name] : [])));
  const calls = turns.flatMap((turn, i) => callByCall(turn).map((one, n) => ({ ...one, i, n })));
  return calls.flatMap(({ action, observation, i, n }): Act[] => {
    if (action.kind !== 'call' || !observation || !ofSession.has(action.call.name)) return [];
    if (BEFORE.includes(observation.error)) return [];
    const { text, error, reward, done, images } = observation;
    const said = {
      text,
      ...(error !== undefined && { error }),
      ...(reward !== undefined && { reward }),
      ...(done && { done }),
      ...(images && { images }),
    };
    return [{ call: action.call, turn: i + 1, ...(n > 0 && { nth: n + 1 }), observation: said }];
  });
}

/**
 * What a call is known by wherever it is made, and made again. `turn` is the number of its turn, from 1, and `nth` its own
 * among the calls of that.
 */
export const callKey = (episode: string, turn: number, nth = 1): string =>
  `${episode}/${turn}${nth === 1 ? '' : `.${nth}`}`;

/** The key of the call that the last turn of an episode is to make next. */
export const keyOfNextCall = (episode: string, turns: readonly Pick<Turn, 'results'>[]): string =>
  callKey(episode, turns.length, 1 + (turns.at(-1)?.results?.length ?? 0));

/** A call's place in its episode, by its key: the number of its turn, and its own behind a dot where it is not the first. */
export const placeOfCall = (key: string): { episode: string; place: string } => {
  const at = key.lastIndexOf('/');
  return { episode: key.slice(0, at), place: key.slice(at + 1) };
};
