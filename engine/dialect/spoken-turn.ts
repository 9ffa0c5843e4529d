import type { Action } from '../../core/episode/episode.ts';
import type { SpokenTurn } from './contract.ts';
import { malformed } from './malformed.ts';

/** A turn that was read, or why it does not parse. */
export type ReadTurn = SpokenTurn | { problem: string };

/** What a turn asks for where one call a turn was asked for. */
export function actionOf(read: ReadTurn): Action {
  if ('problem' in read) return malformed(read.problem);
  const [call, ...others] = read.calls;
  if (others.length > 0) return malformed('one call a turn');
  if (call !== undefined) return { kind: 'call', call };
  return read.text === '' ? malformed('no call and no answer') : { kind: 'answer', answer: read.text };
}

/** As `Dialect.read` gives it. */
export const spokenOf = (read: ReadTurn): SpokenTurn | undefined =>
  'problem' in read || (read.calls.length === 0 && read.text === '') ? undefined : read;
