import type { Action } from '../../core/episode/episode.ts';
import type { SpokenTurn } from './contract.ts';
import { malformed, tooManyCalls } from './malformed.ts';

/** A turn that was read, or why it does not parse. */
export type ReadTurn = SpokenTurn | { problem: string };

/** What a turn asks for where it may have so many calls. */
export function actionOf(read: ReadTurn, mostCalls = 1): Action {
  if ('problem' in read) return malformed(read.problem);
  const { calls } = read;
  if (calls.length > mostCalls) return tooManyCalls(mostCalls);
  if (calls.length > 1) return { kind: 'calls', calls };
  if (calls.length === 1) return { kind: 'call', call: calls[0]! };
  return read.text === '' ? malformed('no call and no answer') : { kind: 'answer', answer: read.text };
}

/** As `Dialect.read` gives it. */
export const spokenOf = (read: ReadTurn): SpokenTurn | undefined =>
  'problem' in read || (read.calls.length === 0 && read.text === '') ? undefined : read;
