import type { StepFacts } from '../../core/training/step-facts.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { readSteps } from '../../store/training/step-facts.ts';

export type StoredStep = Omit<StepFacts, 'circumstances' | 'checkpoint'> & { weights: string };

/** What two executions of a stage of self-play leave alike. */
export const playedSteps = async (store: ObjectStore, run: string): Promise<StoredStep[]> =>
  (await readSteps(store, run))
    .filter(({ stage }) => stage === 'play')
    .map((one) => {
      const { circumstances: _, checkpoint, ...step } = one;
      return { ...step, weights: checkpoint.weights };
    });
