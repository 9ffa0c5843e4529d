import type { Observation, Turn } from './episode.ts';

type Acted = Pick<Turn, 'action' | 'observation' | 'results'>;

/**
 * A turn with several calls as turns with one each, in order: a call that was not made has no observation. Any other turn
 * as it is.
 */
export function callByCall<T extends Acted>(turn: T): T[] {
  const { action, observation: _, results = [], ...rest } = turn;
  if (action.kind !== 'calls') return [turn];
  return action.calls.map((call, i) => {
    const observation = results[i];
    return { ...rest, action: { kind: 'call', call }, ...(observation && { observation }) } as T;
  });
}

/** What the calls of a turn brought, as one: the first error, all rewards, all texts one below the other. */
export function joinedObservation(results: readonly Observation[]): Observation {
  const error = results.find((one) => one.error !== undefined)?.error;
  const seconds = sumOf(results.flatMap((one) => one.seconds ?? []));
  const reward = sumOf(results.flatMap((one) => one.reward ?? []));
  const images = results.flatMap((one) => one.images ?? []);
  return {
    text: results.map(({ text }) => text).join('\n'),
    ...(error !== undefined && { error }),
    ...(seconds !== undefined && { seconds }),
    ...(reward !== undefined && { reward }),
    ...(results.some(({ done }) => done) && { done: true }),
    ...(images.length > 0 && { images }),
  };
}

const sumOf = (values: readonly number[]): number | undefined =>
  values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0);
