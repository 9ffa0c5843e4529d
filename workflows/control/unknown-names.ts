import { log, setDefaultSignalHandler, workflowInfo } from '@temporalio/workflow';
import { nearest } from './nearest.ts';
import { refusal } from './refuse.ts';

/**
 * A workflow of a type that is none of these fails at once, and says which there are. The worker would try it again for
 * ever, and nobody would see why but who reads its log.
 */
export const unknownType = (types: readonly string[]) => async (): Promise<never> => {
  throw refusal(`there is no workflow ${nearest(workflowInfo().workflowType, types)}`);
};

/**
 * Signals of other names than a handler has been set for by now are logged, and `note` is told, with the nearest of
 * `names`. Without this they would wait for their handler, and nobody would see that.
 */
export function noteUnknownSignals(names: readonly string[], note: (problem: string) => void): void {
  setDefaultSignalHandler((signal) => {
    const problem = `there is no signal ${nearest(signal, names)}`;
    log.warn('an unknown signal was ignored', { problem });
    note(problem);
  });
}
