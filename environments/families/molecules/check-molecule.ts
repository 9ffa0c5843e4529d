import { readMolecule } from './rdkit.ts';
import type { MoleculeFacts } from './rdkit.ts';
import type { Target } from './targets.ts';

/** Most that a molecule which breaks a limit can get. */
const HALF = 0.5;

/** A molecule as the fast tier sees it; `score` is 1 where nothing is wrong. */
export interface MoleculeCheck {
  score: number;
  reason: string;
  /** null where the SMILES cannot be read. */
  molecule: MoleculeFacts | null;
}

/**
 * 0 for no answer and for what RDKit cannot read (syntax, valences); 0.25 for what no tier can calculate (ions,
 * radicals, isotopes, several parts); else 0.5 times the part of the heavy atoms that are within the limits where
 * some are not; 1 for a molecule that keeps all limits.
 */
export function checkMolecule(
  answer: string | null,
  limits: Pick<Target, 'heavyAtoms' | 'elements'>,
): MoleculeCheck {
  if (answer === null) return { score: 0, reason: 'no answer', molecule: null };
  const molecule = readMolecule(answer.trim());
  if (molecule === null) {
    return { score: 0, reason: 'not the SMILES of a molecule with right valences', molecule };
  }
  const odd = oddities(molecule);
  if (odd !== undefined) return { score: HALF / 2, reason: odd, molecule };
  const strange = molecule.atoms.filter(
    ({ element }) => element !== 'H' && !limits.elements.includes(element),
  );
  const surplus = molecule.heavyAtoms - limits.heavyAtoms;
  if (strange.length === 0 && surplus <= 0) return { score: 1, reason: 'within the limits', molecule };
  const reasons = [
    ...(strange.length > 0 ? [`${strange[0]!.element} is not allowed`] : []),
    ...(surplus > 0 ? [`${molecule.heavyAtoms} heavy atoms, ${limits.heavyAtoms} are allowed`] : []),
  ];
  const within = Math.min(molecule.heavyAtoms - strange.length, limits.heavyAtoms) / molecule.heavyAtoms;
  return { score: HALF * within, reason: reasons.join('; '), molecule };
}

function oddities({ fragments, charge, radicals, isotopes, heavyAtoms }: MoleculeFacts): string | undefined {
  if (heavyAtoms === 0) return 'no heavy atom';
  if (fragments > 1) return 'several parts; one molecule is wanted';
  if (charge !== 0) return 'a charged molecule';
  if (radicals > 0) return 'unpaired electrons';
  if (isotopes) return 'isotopes; leave their numbers out';
  return undefined;
}
