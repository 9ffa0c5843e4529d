import type { MainModule, Mol } from '@rdkit/rdkit';
import { z } from 'zod';

let rdkit: MainModule | undefined;
let loading: Promise<void> | undefined;

/**
 * Loads RDKit, once: 0.3 s of processor time and 40 MB. All functions below throw without it, because a verifier's
 * subject is made where nothing can be waited for; what serves an environment has had it prepared.
 */
export function loadRdkit(): Promise<void> {
  loading ??= load().catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

async function load(): Promise<void> {
  const { default: initialize } = await import('@rdkit/rdkit');
  // What RDKit prints about a SMILES that it cannot read belongs to the policy's mistakes, not into a worker's log.
  rdkit = await initialize({ print: () => undefined, printErr: () => undefined });
}

export interface MoleculeFacts {
  /** RDKit's canonical SMILES: two ways to write one molecule have the same. */
  smiles: string;
  heavyAtoms: number;
  /** Symbols of the heavy atoms, each once, in alphabetical order. */
  elements: string[];
  /** Separate parts; a molecule has one. */
  fragments: number;
  charge: number;
  /** Unpaired electrons. */
  radicals: number;
  /** An atom whose isotope is given. */
  isotopes: boolean;
  atoms: AtomFacts[];
  bonds: BondFacts[];
}

interface AtomFacts {
  element: string;
  hydrogens: number;
  aromatic: boolean;
  /** Sizes of the rings that it is in. */
  rings: number[];
}

interface BondFacts {
  atoms: [number, number];
  /** 1, 2 or 3; aromatic rings as alternating bonds. */
  order: number;
  aromatic: boolean;
}

/** What cannot be in a molecule of up to some dozens of atoms; longer input is refused before RDKit sees it. */
const LONGEST_SMILES = 200;
const SYMBOLS = new Map([
  [1, 'H'],
  [5, 'B'],
  [6, 'C'],
  [7, 'N'],
  [8, 'O'],
  [9, 'F'],
  [14, 'Si'],
  [15, 'P'],
  [16, 'S'],
  [17, 'Cl'],
  [35, 'Br'],
  [53, 'I'],
]);
const symbolOf = (number: number): string => SYMBOLS.get(number) ?? `#${number}`;

const atomSchema = z.object({
  z: z.int().optional(),
  impHs: z.int().optional(),
  chg: z.int().optional(),
  nRad: z.int().optional(),
  isotope: z.int().optional(),
});
const bondSchema = z.object({ atoms: z.tuple([z.int(), z.int()]), bo: z.int().optional() });
const extensionSchema = z.object({
  aromaticAtoms: z.array(z.int()).default([]),
  aromaticBonds: z.array(z.int()).default([]),
  atomRings: z.array(z.array(z.int())).default([]),
});
/** The part of commonchem JSON that is read. */
const jsonSchema = z.object({
  defaults: z.object({
    atom: z.object({ z: z.int(), impHs: z.int(), chg: z.int(), nRad: z.int(), isotope: z.int() }),
    bond: z.object({ bo: z.int() }),
  }),
  molecules: z.tuple([
    z.object({
      atoms: z.array(atomSchema),
      bonds: z.array(bondSchema).default([]),
      extensions: z.array(z.looseObject({ name: z.string() })).default([]),
    }),
  ]),
});

/** Facts of a molecule, or null for a SMILES that RDKit cannot read or whose valences are wrong. */
export function readMolecule(smiles: string): MoleculeFacts | null {
  if (smiles === '' || smiles.length > LONGEST_SMILES || /\s/u.test(smiles)) return null;
  return withMolecule(smiles, (molecule) => factsOf(molecule.get_smiles(), molecule.get_json()));
}

/** An SVG element of the structure, width and height in pixels; null where `readMolecule` gives null. */
export function drawMolecule(smiles: string, width: number, height: number): string | null {
  const svg = withMolecule(smiles, (molecule) => molecule.get_svg(width, height));
  return svg === null ? null : svg.slice(svg.indexOf('<svg'));
}

/** RDKit's descriptors by name, e.g. `CrippenClogP` and `tpsa`; null where `readMolecule` gives null. */
export function descriptorsOf(smiles: string): Record<string, number> | null {
  return withMolecule(smiles, (molecule) =>
    z.record(z.string(), z.number()).parse(JSON.parse(molecule.get_descriptors())),
  );
}

/** Its memory is not JavaScript's: it is given back whatever happens. */
function withMolecule<T>(smiles: string, use: (molecule: Mol) => T): T | null {
  if (rdkit === undefined) throw new Error('RDKit is not loaded: await loadRdkit() first');
  let molecule: Mol | null;
  try {
    molecule = rdkit.get_mol(smiles);
  } catch (error) {
    // At some of what it cannot read RDKit throws, which comes as a WebAssembly.Exception, and that is no Error.
    if (error instanceof Error) throw error;
    return null;
  }
  if (molecule === null) return null;
  try {
    return use(molecule);
  } finally {
    molecule.delete();
  }
}

function factsOf(smiles: string, json: string): MoleculeFacts {
  const { defaults, molecules } = jsonSchema.parse(JSON.parse(json));
  const [{ atoms, bonds, extensions }] = molecules;
  const representation = extensions.find(({ name }) => name === 'rdkitRepresentation');
  const { aromaticAtoms, aromaticBonds, atomRings } = extensionSchema.parse(representation ?? {});
  const all = atoms.map((atom) => ({
    symbol: symbolOf(atom.z ?? defaults.atom.z),
    hydrogens: atom.impHs ?? defaults.atom.impHs,
    charge: atom.chg ?? defaults.atom.chg,
    radicals: atom.nRad ?? defaults.atom.nRad,
    isotope: atom.isotope ?? defaults.atom.isotope,
  }));
  const heavy = all.map(({ symbol }) => symbol).filter((symbol) => symbol !== 'H');
  const total = (of: (atom: (typeof all)[number]) => number) => all.reduce((sum, atom) => sum + of(atom), 0);
  return {
    smiles,
    heavyAtoms: heavy.length,
    elements: [...new Set(heavy)].toSorted((a, b) => (a < b ? -1 : 1)),
    fragments: smiles.split('.').length,
    charge: total(({ charge }) => charge),
    radicals: total(({ radicals }) => radicals),
    isotopes: all.some(({ isotope }) => isotope !== 0),
    atoms: all.map((atom, i) => ({
      element: atom.symbol,
      hydrogens: atom.hydrogens,
      aromatic: aromaticAtoms.includes(i),
      rings: atomRings.filter((ring) => ring.includes(i)).map((ring) => ring.length),
    })),
    bonds: bonds.map((bond, i) => ({
      atoms: bond.atoms,
      order: bond.bo ?? defaults.bond.bo,
      aromatic: aromaticBonds.includes(i),
    })),
  };
}
