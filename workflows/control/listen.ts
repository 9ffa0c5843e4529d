import { log, setHandler } from '@temporalio/workflow';
import type { SignalDefinition } from '@temporalio/workflow';
import type { Shape } from '../../core/json/shape.ts';

/**
 * Handles a signal. Anyone who reaches the server can send one, and a handler that throws holds up its workflow for
 * ever: what is malformed is logged and ignored.
 */
export function listen<T>(
  signal: SignalDefinition<[T]>,
  shape: Shape<T>,
  handler: (message: T) => void | Promise<void>,
): void {
  setHandler(signal, (message) => {
    const problem = shape(message, signal.name);
    if (problem === null) return handler(message);
    log.warn('a malformed signal was ignored', { signal: signal.name, problem });
  });
}
