import molecules from '../../examples/molecules.json' with { type: 'json' };
import { parseSpec } from '../../spec/parse-spec.ts';
import type { EvaluationRequest } from '../../core/requests/evaluation.ts';
import { splitStages } from '../specs.ts';
import { builtInEnvironments } from '../../environments/families/index.ts';

/** Whom an arm's training asks about its molecules. */
export const ARMS = {
  ladder: 'the ladder',
  everything: 'DFT of every valid candidate',
  xtb: 'xTB alone',
  fast: 'the fast tier alone',
} as const;
export type ArmName = keyof typeof ARMS;

interface Size {
  quick: boolean;
}

/** Judged of each arm, one answer to each. */
const TASKS = 256;
/** More steps than fit into any time that an arm is given. */
const ENDLESS = 5000;
/** What no policy shows in so few tasks: an arm ends by its steps or by its time. */
const NEVER = { successAtLeast: 0.85, confidence: 0.999, tasks: 64, everySteps: ENDLESS };

const { verification, model, stages, ...rest } = molecules;
const { warmStart, rl } = splitStages(stages);
const [fastRung, xtbRung, dftRung] = verification.rungs;
const fastReward = { components: [{ verifier: fastRung!.verifier, role: 'outcome' }] };
/** What higher tier would have said is not asked while an arm trains: its time is for training. */
const ladderOf = (tiers: readonly object[]) => ({
  ...verification,
  rungs: tiers,
  evaluateBy: fastRung!.verifier,
});

/** The demo's warm start, and one small step after it. */
export function warmSpec({ quick }: Size) {
  const [stage] = rl;
  return {
    ...rest,
    model,
    reward: fastReward,
    stages: [
      quick ? { ...warmStart, maxRounds: 1, graduation: { successAtLeast: 0, tasksPerLevel: 8 } } : warmStart,
      { ...stage!, maxSteps: 1, groupsPerStep: 1, graduation: NEVER },
    ],
    evaluation: { ...rest.evaluation, count: 16 },
  };
}

/** The demo's stages after that warm start, judged as the arm has it; one without end where it ends by its time. */
export function armSpec(arm: ArmName, { from, endless, quick }: Size & { from: string; endless: boolean }) {
  const { budget: _, ...dftOfAll } = dftRung!;
  const tiers = {
    ladder: verification.rungs,
    everything: [fastRung!, dftOfAll],
    xtb: [fastRung!, xtbRung!],
    fast: null,
  }[arm];
  const stages = rl.map((stage) => ({
    ...stage,
    ...(quick && { maxSteps: 2, groupsPerStep: 2 }),
    graduation: NEVER,
  }));
  return {
    ...rest,
    model: { from },
    reward: tiers === null ? fastReward : rest.reward,
    ...(tiers !== null && { verification: ladderOf(tiers) }),
    stages: endless ? [{ ...stages[0]!, maxSteps: ENDLESS }] : stages,
    evaluation: { ...rest.evaluation, count: 16 },
    // The fast tier alone makes so many steps that all of them would not fit on a disk.
    retention: { keepEvery: arm === 'fast' ? 20 : 2 },
  };
}

/** How what an arm has learnt is judged: by DFT, on tasks that no training has seen. */
export function judgedBy({ quick }: Size): Omit<EvaluationRequest, 'run' | 'name' | 'step' | 'checkpoint'> {
  const environments = new Map(builtInEnvironments.map((one) => [one.name, one]));
  const spec = parseSpec(
    { ...molecules, verification: { ...verification, evaluateBy: 'dft' } },
    'quality',
    environments,
  );
  const { seed, sampling, reward } = spec;
  return {
    seed,
    sampling,
    reward,
    arms: spec.evaluation.arms,
    tasks: quick ? 8 : TASKS,
    split: 'test',
    verification: spec.verification!,
  };
}
