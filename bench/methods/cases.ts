import { METHOD_KINDS } from '../../core/algorithms/index.ts';
import type { TrainBatch } from '../../engine/learner/contract.ts';
import { readMolecule } from '../../environments/families/molecules/rdkit.ts';
import type { Case, TrialSetting } from './trial.ts';

/** That of the demo. */
const REWARD = {
  components: [
    { verifier: 'exact-match', role: 'outcome', weight: 1 },
    { verifier: 'format', role: 'bonus', weight: 0.05, gatedBy: 'exact-match' },
    { verifier: 'tool-shaping', role: 'penalty', weight: 0.2 },
  ],
};

/** A model of 0.1 M parameters that knows how to call, and does it right about half of the time. */
export const SETTING: TrialSetting = {
  name: 'one-call',
  environment: 'calculator',
  reward: REWARD,
  levels: [1],
  maxTurns: 3,
  maxCompletionTokens: 40,
  model: {
    hiddenSize: 64,
    intermediateSize: 128,
    layers: 2,
    attentionHeads: 4,
    keyValueHeads: 2,
    headSize: 16,
  },
  warmStart: { updatesPerRound: 20, successAtLeast: 0.4 },
  budget: 60_000,
  looks: 4,
  tasks: 400,
};

/** The same for longer, by when seeds differ less than what methods bring. */
export const LONG: TrialSetting = { ...SETTING, budget: 240_000, looks: 8 };

/** The same with three calls, each of which may fail the episode. */
export const MANY_TURNS: TrialSetting = {
  ...SETTING,
  name: 'three-calls',
  levels: [3],
  maxTurns: 6,
  maxCompletionTokens: 80,
  budget: 90_000,
};

const MOLECULE = { verifier: 'molecule', role: 'outcome', weight: 1 };

/** Molecules that the fast tier is asked about alone: any that it takes is as good as another. */
export const MOLECULES: TrialSetting = {
  ...SETTING,
  name: 'molecules',
  environment: 'molecules',
  canonical: (answer) => readMolecule(answer)?.smiles ?? answer,
  reward: { components: [MOLECULE] },
  levels: [1, 2, 3],
  maxTurns: 2,
  maxCompletionTokens: 48,
};

/** That of `MOLECULES`, and what is unlike the other samples of its task is paid for it. */
export const paidForDiversity = (by: 'count' | 'similarity') => ({
  components: [MOLECULE],
  rules: [{ kind: 'diversity', by, weight: 0.5 }],
});

/** A quarter of the tokens: to see that everything works. */
export const quickly = (setting: TrialSetting): TrialSetting => ({
  ...setting,
  name: `quick-${setting.name}`,
  budget: setting.budget / 4,
  looks: 2,
  tasks: 100,
});

const MINIBATCH = 32;

/** What all have alike: four updates a step. */
const STAGE: Case['stage'] = {
  groupsPerStep: 16,
  numGenerations: 8,
  algorithm: { minibatch: MINIBATCH },
  optimizer: { learningRate: 3e-4 },
};

type Constants = Partial<Omit<Case['stage'], 'algorithm'>> & { algorithm?: object; taught?: true };

/**
 * Where a method has other constants than its defaults, each with the reason. The learning rate was chosen with GRPO
 * alone, on a seed that no trial has (docs/log.md): Adam's step hardly depends on the scale of a loss.
 */
const CONSTANTS: Partial<Record<(typeof METHOD_KINDS)[number], Constants>> = {
  // The paper's clip is for answers of thousands of tokens; the mean log-ratio of ten varies some thirty times as much.
  gspo: { algorithm: { clipRatioLow: 0.01, clipRatioHigh: 0.015 } },
  // λ = 1 − 1 / (α l): the paper's 0.05 is for thousands of tokens, and at the twenty of these answers λ would be 0.
  vapo: { algorithm: { alpha: 1 } },
  // One update a step: its loss has no ratio, so samples of an earlier policy with advantages below 0 drive it away.
  remax: { algorithm: { minibatch: 128 } },
  // Half of its sequences are there to be compared with: as many updates as the others. At the rate of the others it forgets
  // everything (docs/log.md): what fails is made less likely without a bound.
  kto: { algorithm: { minibatch: 64 }, optimizer: { learningRate: 1e-4 } },
  // Half of the samples branch off, a quarter of them by what the others of it have brought.
  agentq: { collect: { kind: 'tree', roots: 4, branches: 2 } },
  opd: { taught: true },
};

export const caseOf = (
  name: string,
  { algorithm, taught, ...stage }: Constants,
  rest: Partial<Case> = {},
): Case => ({
  name,
  ...(taught && { taught }),
  stage: { ...STAGE, ...stage, algorithm: { minibatch: MINIBATCH, ...algorithm } },
  ...rest,
});

/** What `process` lives by: each turn is paid for a sub-goal of its own. */
const TURNS_PAID = {
  components: [...REWARD.components, { verifier: 'sub-goals', role: 'bonus', weight: 0 }],
  rules: [{ kind: 'process', verifier: 'sub-goals', by: 'turns', weight: 0.1 }],
};

/** `rft`, and what failed is imitated as well where it solved another task: the same samples, none with hints. */
const RELABELLED = caseOf('hindsight-relabel', {
  algorithm: { kind: 'hindsight', corrections: 0, relabel: true },
});

export const METHOD_CASES: readonly Case[] = [
  ...METHOD_KINDS.map((kind) => {
    const { algorithm, ...stage } = CONSTANTS[kind] ?? {};
    return caseOf(
      kind,
      { ...stage, algorithm: { kind, ...algorithm } },
      kind === 'process' ? { reward: TURNS_PAID } : {},
    );
  }),
  RELABELLED,
];

/** Observations count as if the policy had sampled them, with the advantage of the token before. */
export function unmasked(batch: TrainBatch): TrainBatch {
  const mask = batch.mask.slice();
  const advantages = batch.streams.advantages!.slice();
  for (let sequence = 0; sequence + 1 < batch.offsets.length; sequence++) {
    const end = batch.offsets[sequence + 1]!;
    let at = batch.offsets[sequence]!;
    while (at < end && mask[at] === 0) at++;
    for (at++; at < end; at++) {
      if (mask[at] === 1) continue;
      mask[at] = 1;
      advantages[at] = advantages[at - 1]!;
    }
  }
  return { ...batch, mask, streams: { ...batch.streams, advantages } };
}
