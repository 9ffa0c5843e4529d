import { noOutcomes } from '../../core/episode/outcome.ts';
import type { StepFacts } from '../../core/training/step-facts.ts';

/** Facts of a step that nothing happened in, but for what a test says. */
export const someStep = (more: Partial<StepFacts> = {}): StepFacts => ({
  stage: 'rl',
  stageStep: 1,
  maxSteps: 4,
  step: 1,
  environment: 'calculator',
  checkpoint: { manifest: { key: 'k', sha256: '0'.repeat(64), bytes: 1 }, weights: '0'.repeat(64), step: 1 },
  backend: null,
  rollout: null,
  batch: null,
  learner: null,
  heldOut: null,
  estimates: {},
  adjusted: null,
  alarms: [],
  decision: { kind: 'continue', reason: null, action: null, question: null },
  circumstances: {
    endedAt: 1000,
    seconds: { rollout: 1, tool: 0, verification: 0, learner: 0, data: 0, orchestration: 0 },
    learnerSeconds: null,
    incidents: [],
  },
  ...more,
});

/** A held-out measurement of so many successes. */
export const someHeldOut = (successes: number, trials: number): NonNullable<StepFacts['heldOut']> => ({
  arms: [{ arm: { environment: 'calculator', level: 1 }, successes, trials }],
  outcomes: { ...noOutcomes(), scored: trials },
  meanReward: successes / trials,
  sampledTokens: 1,
});
