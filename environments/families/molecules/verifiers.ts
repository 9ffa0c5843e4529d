import type { TierAnswer } from '../../../core/tier-contract.ts';
import type { Candidate, FastVerifier, TierVerifier, Verdict } from '../../contract/environment.ts';
import { checkMolecule } from './check-molecule.ts';
import { propertyScore } from './property-score.ts';
import type { PropertyEstimate } from './property-score.ts';
import type { Target } from './targets.ts';

const POOL = 'chemistry';

/** How a tier's figure is brought to the scale of the targets, and how far it is off then (one standard deviation). */
interface Scale {
  slope: number;
  offset: number;
  deviation: number;
}
interface Scales {
  gap_eV: Scale;
  dipole_D: Scale;
}
export interface Properties {
  gap: PropertyEstimate;
  dipole: PropertyEstimate;
}

/** The targets are stated on this tier's own scale. */
export const DFT_SCALE: Scales = {
  gap_eV: { slope: 1, offset: 0, deviation: 0 },
  dipole_D: { slope: 1, offset: 0, deviation: 0 },
};
/**
 * GFN2-xTB against B3LYP/STO-3G at the same geometries: least squares over 356 enumerated molecules of up to 7
 * heavy atoms (r = 0.95 and 0.88).
 */
export const XTB_SCALE: Scales = {
  gap_eV: { slope: 0.786, offset: 3.58, deviation: 0.82 },
  dipole_D: { slope: 0.648, offset: 0.15, deviation: 0.42 },
};

/** What has no arrangement in space is no molecule, whatever its valences say. */
const FAULTS = { embedding: 0, geometry: 0 };

const targetOf = (candidate: Candidate): Target => candidate.task.info as unknown as Target;

/** 1 for a molecule within the task's limits; below that for one outside, and 0 for what is no molecule. */
export function moleculeVerifier(): FastVerifier {
  return {
    name: 'molecule',
    version: '1',
    tier: 'fast',
    cost: { seconds: 0.001, usd: 0 },
    verify: (candidate) => {
      const { score, reason, molecule } = checkMolecule(candidate.answer, targetOf(candidate));
      if (molecule === null) return { kind: 'score', score, evidence: reason };
      const { smiles } = molecule;
      return { kind: 'score', score, canonical: smiles, evidence: `${smiles}: ${reason}` };
    },
  };
}

/** GFN2-xTB, on the scale of DFT. */
export function xtbVerifier(): TierVerifier {
  return {
    name: 'xtb',
    version: '1',
    tier: 'simulation',
    cost: { seconds: 0.2, usd: 0 },
    subject: (candidate) => {
      const smiles = subjectOf(candidate);
      return smiles === null ? null : { smiles };
    },
    interpret: (candidate, answer) => interpret(candidate, answer, XTB_SCALE),
    faults: FAULTS,
    served: { by: 'pool', pool: POOL },
    limits: { timeoutSeconds: 120, heartbeatSeconds: 20, maxAttempts: 5 },
  };
}

/** B3LYP with density fitting in a small basis. */
export function dftVerifier(basis: 'sto-3g' | 'def2-svp' = 'sto-3g'): TierVerifier {
  return {
    name: 'dft',
    version: '1',
    tier: 'high-fidelity',
    cost: { seconds: basis === 'sto-3g' ? 3 : 10, usd: 0 },
    subject: (candidate) => {
      const smiles = subjectOf(candidate);
      return smiles === null ? null : { basis, smiles };
    },
    interpret: (candidate, answer) => interpret(candidate, answer, DFT_SCALE),
    faults: FAULTS,
    served: { by: 'pool', pool: POOL },
    limits: { timeoutSeconds: 900, heartbeatSeconds: 20, maxAttempts: 5 },
  };
}

/** A chemist's opinion: whether it can be made and kept, say. It is for one molecule and one target. */
export function expertVerifier(): TierVerifier {
  return {
    name: 'expert',
    version: '1',
    tier: 'world',
    cost: { seconds: 86_400, usd: 0 },
    subject: (candidate) => {
      const smiles = subjectOf(candidate);
      return smiles === null ? null : { smiles, task: candidate.task.prompt };
    },
    served: { by: 'people' },
  };
}

/** The canonical SMILES, so that duplicates are measured once; null for what the fast tier does not let through. */
function subjectOf(candidate: Candidate): string | null {
  const { score, molecule } = checkMolecule(candidate.answer, targetOf(candidate));
  return score === 1 && molecule !== null ? molecule.smiles : null;
}

function interpret(candidate: Candidate, answer: TierAnswer, scales: Scales): Verdict {
  if (answer.kind === 'abstained') return { kind: 'abstain', reason: `${answer.type}: ${answer.reason}` };
  if (answer.kind === 'scored') return { kind: 'abstain', reason: `${answer.verifier} did not measure` };
  const estimate = onScale(answer.values, scales);
  if (estimate === undefined) {
    return { kind: 'abstain', reason: `${answer.verifier} measured no gap_eV and dipole_D` };
  }
  const { score, uncertainty } = propertyScore(targetOf(candidate), estimate);
  const smiles = subjectOf(candidate);
  const evidence = `${smiles === null ? '' : `${smiles}: `}${inWords(estimate)}`;
  return { kind: 'score', score, uncertainty, evidence };
}

/** What a tier measured, on the scale of the targets; undefined where a property is missing. */
export function onScale(values: Record<string, number>, scales: Scales): Properties | undefined {
  const scaled = (name: keyof Scales): PropertyEstimate | undefined => {
    const value = values[name];
    if (value === undefined || !Number.isFinite(value)) return undefined;
    const { slope, offset, deviation } = scales[name];
    return { value: slope * value + offset, deviation };
  };
  const gap = scaled('gap_eV');
  const dipole = scaled('dipole_D');
  return gap === undefined || dipole === undefined ? undefined : { gap, dipole };
}

/** E.g. `gap 7.93 ± 0.95 eV, dipole 1.80 ± 0.46 D`. */
export function inWords({ gap, dipole }: Properties): string {
  const show = ({ value, deviation }: PropertyEstimate, unit: string) =>
    `${value.toFixed(2)}${deviation > 0 ? ` ± ${deviation.toFixed(2)}` : ''} ${unit}`;
  return `gap ${show(gap, 'eV')}, dipole ${show(dipole, 'D')}`;
}
