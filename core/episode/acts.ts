import type { Observation, ToolCall, Turn } from './episode.ts';

/** A call that a session has taken, and what it led to: what is played again where the session has to come back. */
export interface Act {
  call: ToolCall;
  /** The number of its turn in the episode, from 1. */
  turn: number;
  observation: Pick<Observation, 'text' | 'error' | 'reward' | 'done' | 'images'>;
}

/** Mistakes that are told before a call reaches its session. */
const BEFORE: readonly Observation['error'][] = ['malformed-call', 'unknown-tool', 'invalid-arguments'];

/** The calls of an episode that have reached its session, in order. `tools` are those of the task. */
export function actsOf(
  turns: readonly Pick<Turn, 'action' | 'observation'>[],
  tools: readonly { name: string; ofSession: boolean }[],
): Act[] {
  const ofSession = new Set(tools.flatMap((tool) => (tool.ofSession ? [tool.name] : [])));
  return turns.flatMap(({ action, observation }, i): Act[] => {
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
    return [{ call: action.call, turn: i + 1, observation: said }];
  });
}

/** What a call is known by wherever it is made, and made again. `turn` is the number of its turn, from 1. */
export const callKey = (episode: string, turn: number): string => `${episode}/${turn}`;
