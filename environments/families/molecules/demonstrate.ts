import { RandomStream } from '../../../core/random.ts';
import type { Demonstration, Task } from '../../contract/environment.ts';
import { growMolecule } from './enumerate.ts';
import { readMolecule } from './rdkit.ts';
import { roughEstimate } from './rough-estimate.ts';
import type { Target, Window } from './targets.ts';

/** How many molecules the expert thinks of. */
const THOUGHTS = 8;
/** How far off its glance is, eV and debye: distances are weighed by them. */
const GAP_DEVIATION = 0.9;
const DIPOLE_DEVIATION = 0.7;
/** Part of the demonstrations that look a molecule up before they answer. */
const VALIDATED = 0.1;

/**
 * Of a few molecules of the project's own enumeration, the one that seems nearest to the target at a glance. It
 * often misses: how well a molecule does is for the tiers to say, and for the policy to learn from them.
 */
export function demonstrate(task: Task, index: number): Demonstration {
  const target = task.info as unknown as Target;
  const { split, level, index: taskIndex } = task.ref;
  const place = ['demonstration', split, level, taskIndex, index] as const;
  let best = { smiles: 'C', distance: Infinity };
  for (let thought = 0; thought < THOUGHTS; thought++) {
    const molecule = readMolecule(growMolecule(target, ...place, thought));
    if (molecule === null) continue;
    const { gap_eV, dipole_D } = roughEstimate(molecule);
    const distance =
      outside(gap_eV, target.gap) / GAP_DEVIATION +
      (target.dipole === null ? 0 : outside(dipole_D, target.dipole) / DIPOLE_DEVIATION);
    if (distance < best.distance) best = { smiles: molecule.smiles, distance };
  }
  const looks = new RandomStream('molecules', ...place).uniform() < VALIDATED;
  return {
    turns: [
      ...(looks ? [{ call: { name: 'validate', arguments: { smiles: best.smiles } } }] : []),
      { answer: best.smiles },
    ],
    weight: 1,
  };
}

const outside = (value: number, [low, high]: Window): number => Math.max(low - value, value - high, 0);
