import { GradusError } from '../../../core/errors.ts';
import type { RandomStream } from '../../../core/random.ts';
import type { Split } from '../../../core/refs.ts';
import { drawTask } from '../../contract/generated-tasks.ts';
import { LEVELS } from './levels.ts';
import type { Level } from './levels.ts';

export type Window = readonly [low: number, high: number];

/** What a molecule is wanted for. Windows are on the scale of the high-fidelity tier. */
export interface Target {
  /** HOMO–LUMO gap, eV. */
  gap: Window;
  /** Dipole moment, debye; null where any will do. */
  dipole: Window | null;
  heavyAtoms: number;
  elements: readonly string[];
}

/** The target at (split, level, index); the same for the same coordinates. Throws GradusError('environment', 'task'). */
export function targetAt(split: Split, level: number, index: number): Target {
  const shape = LEVELS.find((one) => one.level === level);
  if (shape === undefined || !Number.isSafeInteger(index) || index < 0) {
    throw new GradusError(
      'environment',
      'task',
      `molecules has no task ${index} at level ${level}; levels are ${LEVELS.map((one) => one.level).join(', ')} and indexes whole numbers from 0.`,
    );
  }
  return drawTask(
    { environment: 'molecules', split, level, index },
    (random) => draw(shape, random),
    promptOf,
  );
}

function draw(shape: Level, random: RandomStream): Target {
  return {
    gap: window(shape.gap, random),
    dipole: shape.dipole === undefined ? null : window(shape.dipole, random),
    heavyAtoms: random.int(...shape.heavyAtoms),
    elements: random.pick(shape.elements),
  };
}

/** In steps of a tenth. */
function window({ width, from }: Level['gap'], random: RandomStream): Window {
  const low = random.int(Math.round(from[0] * 10), Math.round(from[1] * 10));
  return [low / 10, (low + Math.round(width * 10)) / 10];
}

export function promptOf({ gap, dipole, heavyAtoms, elements }: Target): string {
  const range = ([low, high]: Window) => `${low.toFixed(1)}-${high.toFixed(1)}`;
  const wanted = [
    `gap ${range(gap)} eV`,
    ...(dipole === null ? [] : [`dipole ${range(dipole)} D`]),
    `up to ${heavyAtoms} atoms of ${elements.join(' ')}`,
  ];
  return wanted.join(', ');
}
