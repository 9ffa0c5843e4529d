/** What tasks of one level ask for. */
export interface Level {
  level: number;
  /** Width of the window, eV, and the range that its lower end is drawn from. */
  gap: { width: number; from: readonly [number, number] };
  /** The same in debye; a level without it asks for a gap alone. */
  dipole?: { width: number; from: readonly [number, number] };
  /** Most heavy atoms: drawn from this range. */
  heavyAtoms: readonly [number, number];
  elements: readonly (readonly string[])[];
}

const ALL = ['C', 'N', 'O', 'F'];

/**
 * Windows on the scale of B3LYP/STO-3G. Of enumerated molecules of up to 7 heavy atoms the gap lies between 4.6 and
 * 15.3 eV with a median of 7.8, the dipole between 0 and 3.6 debye with a median of 1.4 (2nd to 98th percentile), and
 * so each level's windows hold fewer of them.
 */
export const LEVELS: readonly Level[] = [
  { level: 1, gap: { width: 2, from: [5, 10] }, heavyAtoms: [6, 7], elements: [ALL] },
  {
    level: 2,
    gap: { width: 1.5, from: [5, 9] },
    dipole: { width: 1.2, from: [0, 2] },
    heavyAtoms: [6, 7],
    elements: [ALL, ['C', 'N', 'O']],
  },
  {
    level: 3,
    gap: { width: 1, from: [4.5, 9] },
    dipole: { width: 0.8, from: [0.5, 2.5] },
    heavyAtoms: [6, 7],
    elements: [ALL, ['C', 'N', 'O'], ['C', 'O']],
  },
  {
    level: 4,
    gap: { width: 0.6, from: [3.5, 6.5] },
    dipole: { width: 0.6, from: [2.5, 4.5] },
    heavyAtoms: [5, 7],
    elements: [ALL, ['C', 'N', 'O'], ['C', 'O']],
  },
];
