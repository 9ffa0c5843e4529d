import type { ObjectStore } from '../../store/objects/object-store.ts';
import { putVerdict } from '../../activities/verification/verdict-cache.ts';
import { emptyAccount } from '../../core/ladder/budget.ts';
import { noCalibration } from '../../core/ladder/calibration.ts';
import type { LadderRequest, PlanRequest } from '../../core/ladder/requests.ts';
import type { BlobRef } from '../../core/refs.ts';
import calculatorWithLadder from './ladder-calculator.ts';
import { answered, judgedGroup, rewardBy } from './ladder-groups.ts';
import { tierSpec } from './tier-specs.ts';

// A step whose candidates are numbers, on the two lowest tiers of ladder-calculator.ts, which everything passes.

export const TIERS = [
  tierSpec('is-number', 'fast', { passAtLeast: 0 }),
  tierSpec('near', 'simulation', { passAtLeast: 0 }),
] as const;
export const REWARD = rewardBy(TIERS[0]);

export const task = (index: number) => ({
  environment: calculatorWithLadder.name,
  split: 'train' as const,
  level: 1,
  index,
});

/** These answers to one task, as the fast tier leaves them. The verdicts of a task are those of all runs. */
export const numbers = (
  store: ObjectStore,
  run: string,
  answers: readonly number[],
  index: number,
): Promise<BlobRef> =>
  judgedGroup(
    store,
    calculatorWithLadder,
    task(index),
    answers.map((answer, sample) => answered(String(answer), sample, 2)),
    { run, stage: 'rl', step: 1, id: 'group-0' },
    REWARD,
  );

export const escalating = (run: string, groups: BlobRef[]): LadderRequest => ({
  run,
  verification: { rungs: [...TIERS], offerLateFor: 0, counts: 'computations', evaluateBy: 'is-number' },
  calibrations: [noCalibration()],
  steps: [{ stage: 'rl', step: 1, groups }],
  came: [[], []],
  ledger: { writer: 'run', sequence: 1 },
});

/** The first plan of the tier `near`. */
export const planRequest = (run: string, groups: BlobRef[]): PlanRequest => ({
  ...escalating(run, groups),
  rung: 1,
  again: false,
  budget: { count: 3 },
  account: emptyAccount(),
  underWay: [],
});

/** A verdict of the tier `near` comes from another run. */
export async function keepNear(store: ObjectStore, digest: string, score: number): Promise<void> {
  const asked = { verifier: 'near', version: '1', digest };
  const spent = { seconds: 1, usd: 0 };
  await putVerdict(store, asked, { format: 'gradus.verdict/1', ...asked, spent, kind: 'scored', score });
}
