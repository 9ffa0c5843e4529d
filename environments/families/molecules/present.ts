import { z } from 'zod';
import type { Json } from '../../../core/json/json.ts';
import type { SubjectBlock } from '../../contract/environment.ts';
import { descriptorsOf, drawMolecule, readMolecule } from './rdkit.ts';

/** Of xTB, of DFT, and of a person, who is told what the molecule is wanted for. */
const subjectShape = z.object({
  smiles: z.string(),
  basis: z.string().optional(),
  task: z.string().optional(),
});

const WIDTH = 320;
const HEIGHT = 240;

/** The structure, what was wanted, and what RDKit computes of it. RDKit must be loaded. */
export function presentMolecule(subject: Json): SubjectBlock[] {
  const { smiles, basis, task } = subjectShape.parse(subject);
  const molecule = readMolecule(smiles);
  const drawing = drawMolecule(smiles, WIDTH, HEIGHT);
  const descriptors = descriptorsOf(smiles);
  if (molecule === null || drawing === null || descriptors === null) {
    return [{ kind: 'text', text: `${smiles} is not the SMILES of a molecule with right valences.` }];
  }
  const known: [string, string | number][] = [
    ['SMILES', molecule.smiles],
    ...(basis === undefined ? [] : ([['to be calculated in the basis', basis]] as [string, string][])),
    ['heavy atoms', molecule.heavyAtoms],
    ['elements', molecule.elements.join(' ')],
    ['mass, u', rounded(descriptors['amw'])],
    ['logP (Crippen)', rounded(descriptors['CrippenClogP'])],
    ['polar surface, Å²', rounded(descriptors['tpsa'])],
    ['donors and acceptors of hydrogen bonds', `${descriptors['NumHBD']} and ${descriptors['NumHBA']}`],
    ['rings', descriptors['NumRings'] ?? '?'],
  ];
  return [
    { kind: 'svg', svg: drawing, alt: `Structure of ${molecule.smiles}` },
    ...(task === undefined
      ? []
      : [{ kind: 'table', columns: ['wanted', ''], rows: wantedOf(task) } satisfies SubjectBlock]),
    { kind: 'table', columns: ['of the molecule', ''], rows: known },
  ];
}

const rounded = (value: number | undefined): string | number =>
  value === undefined ? '?' : Number(value.toFixed(2));

/** The parts of a prompt as rows: `gap 7.0-8.0 eV` is the gap, from 7.0 to 8.0 eV. */
const wantedOf = (prompt: string): string[][] =>
  prompt.split(', ').map((part) => {
    const [, what, window, unit] = /^(gap|dipole) (\S+-\S+) (\S+)$/.exec(part) ?? [];
    if (what === undefined) return [part.startsWith('up to ') ? 'size' : 'task', part];
    return [what, `${window!.replace('-', '–')} ${unit}`];
  });
