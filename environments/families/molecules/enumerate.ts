import { RandomStream } from '../../../core/random.ts';

/**
 * Small organic molecules of the project's own making: a molecular graph grows atom by atom within its valences, from
 * an atom or from a ring, and is written as SMILES. What a chemist would not put on a shelf (bonds between two hetero
 * atoms, cumulated double bonds, rings with a triple bond) is not made.
 */
interface Limits {
  /** Heavy atoms at most; at least 1. */
  heavyAtoms: number;
  /** Symbols that may be used; C is always one of them. */
  elements: readonly string[];
}

const VALENCE: Record<string, number> = { C: 4, N: 3, O: 2, F: 1, S: 2, Cl: 1 };
/** How often an element is put on, against the others that may be. */
const SHARE: Record<string, number> = { C: 6, N: 2, O: 2.5, F: 1, S: 0.7, Cl: 0.5 };
export const ELEMENTS = Object.keys(VALENCE);

/** Rings to begin with: symbols in ring order, and the places of the double bonds (i to i + 1). */
const RINGS: { atoms: string[]; doubles: number[] }[] = [
  { atoms: ['C', 'C', 'C'], doubles: [] },
  { atoms: ['C', 'C', 'O'], doubles: [] },
  { atoms: ['C', 'C', 'C', 'C'], doubles: [] },
  { atoms: ['C', 'C', 'C', 'O'], doubles: [] },
  { atoms: ['C', 'C', 'C', 'N'], doubles: [] },
  { atoms: ['C', 'C', 'C', 'C', 'C'], doubles: [] },
  { atoms: ['C', 'C', 'C', 'C', 'O'], doubles: [] },
  { atoms: ['C', 'C', 'C', 'C', 'N'], doubles: [] },
  { atoms: ['C', 'C', 'C', 'C', 'C'], doubles: [0] },
  { atoms: ['C', 'C', 'C', 'C', 'O'], doubles: [0, 2] },
  { atoms: ['C', 'C', 'C', 'C', 'N'], doubles: [0, 2] },
  { atoms: ['C', 'N', 'C', 'C', 'N'], doubles: [0, 2] },
  { atoms: ['C', 'N', 'C', 'C', 'O'], doubles: [0, 2] },
  { atoms: ['C', 'C', 'C', 'C', 'S'], doubles: [0, 2] },
  { atoms: ['C', 'C', 'C', 'C', 'C', 'C'], doubles: [] },
  { atoms: ['C', 'C', 'C', 'C', 'C', 'O'], doubles: [] },
  { atoms: ['C', 'C', 'C', 'C', 'C', 'C'], doubles: [0] },
  { atoms: ['C', 'C', 'C', 'C', 'C', 'C'], doubles: [0, 2, 4] },
  { atoms: ['C', 'C', 'C', 'C', 'C', 'N'], doubles: [0, 2, 4] },
  { atoms: ['C', 'C', 'C', 'N', 'C', 'N'], doubles: [0, 2, 4] },
];

interface Atom {
  element: string;
  free: number;
  /** Has a double or a triple bond already. */
  unsaturated: boolean;
  inRing: boolean;
}
interface Bond {
  a: number;
  b: number;
  order: number;
}

/** A molecule's SMILES, as it was grown (not canonical). The same for the same limits and path. */
export function growMolecule(limits: Limits, ...path: (string | number)[]): string {
  const random = new RandomStream('molecules', 'enumerate', ...path);
  const atoms: Atom[] = [];
  const bonds: Bond[] = [];
  const add = (element: string, inRing = false): number =>
    atoms.push({ element, free: VALENCE[element]!, unsaturated: false, inRing }) - 1;
  const join = (a: number, b: number, order: number): void => {
    bonds.push({ a, b, order });
    for (const at of [atoms[a]!, atoms[b]!]) {
      at.free -= order;
      at.unsaturated ||= order > 1;
    }
  };

  // Large molecules are many more than small ones, so size is drawn first, with a lean to the largest.
  const size = Math.max(random.int(1, limits.heavyAtoms), random.int(1, limits.heavyAtoms));
  const rings = RINGS.filter(
    ({ atoms }) =>
      atoms.length <= size && atoms.every((symbol) => symbol === 'C' || limits.elements.includes(symbol)),
  );
  if (rings.length > 0 && random.uniform() < 0.5) {
    const ring = random.pick(rings);
    for (const symbol of ring.atoms) add(symbol, true);
    for (let i = 0; i < ring.atoms.length; i++) {
      join(i, (i + 1) % ring.atoms.length, ring.doubles.includes(i) ? 2 : 1);
    }
  } else {
    add('C');
  }

  while (atoms.length < size) {
    const open = atoms.flatMap(({ free }, i) => (free > 0 ? [i] : []));
    if (open.length === 0) break;
    const at = random.pick(open);
    const { element, free, unsaturated } = atoms[at]!;
    const choices = limits.elements.filter((symbol) => symbol === 'C' || element === 'C');
    const next = weighted(choices, random);
    // Only carbon has unsaturated neighbours here, and none has two (no cumulated bonds).
    const most = unsaturated ? 1 : Math.min(free, VALENCE[next]!, 3, atoms[at]!.inRing ? 2 : 3);
    const draw = random.uniform();
    const order = draw < 0.07 && most >= 3 ? 3 : draw < 0.3 && most >= 2 ? 2 : 1;
    join(at, add(next), order);
  }
  if (random.uniform() < 0.1) closeRing(atoms, bonds, join, random);
  return writeSmiles(atoms, bonds, random.int(0, atoms.length - 1));
}

function weighted(symbols: readonly string[], random: RandomStream): string {
  const total = symbols.reduce((sum, symbol) => sum + SHARE[symbol]!, 0);
  let left = random.uniform() * total;
  for (const symbol of symbols) {
    left -= SHARE[symbol]!;
    if (left < 0) return symbol;
  }
  return symbols.at(-1)!;
}

/** One more ring of 3 to 6 atoms between two carbons, where there is room; what is unsaturated stays out of rings of 3. */
function closeRing(
  atoms: readonly Atom[],
  bonds: readonly Bond[],
  join: (a: number, b: number, order: number) => void,
  random: RandomStream,
): void {
  if (bonds.some(({ order }) => order === 3)) return;
  const can = (i: number) => atoms[i]!.element === 'C' && atoms[i]!.free > 0 && !atoms[i]!.unsaturated;
  const pairs: [number, number][] = [];
  for (let a = 0; a < atoms.length; a++) {
    const far = distances(atoms.length, bonds, a);
    for (let b = a + 1; b < atoms.length; b++) {
      if (can(a) && can(b) && far[b]! >= 2 && far[b]! <= 5) pairs.push([a, b]);
    }
  }
  if (pairs.length > 0) join(...random.pick(pairs), 1);
}

/** Bonds from one atom to each other one. */
function distances(count: number, bonds: readonly Bond[], from: number): number[] {
  const far = Array.from({ length: count }, () => Infinity);
  far[from] = 0;
  const queue = [from];
  for (const at of queue) {
    for (const { a, b } of bonds) {
      const other = a === at ? b : b === at ? a : -1;
      if (other < 0 || far[other]! < Infinity) continue;
      far[other] = far[at]! + 1;
      queue.push(other);
    }
  }
  return far;
}

/** Depth first from an atom: the first visit of a bond's end goes on or branches, a second one closes a ring. */
function writeSmiles(atoms: readonly Atom[], bonds: readonly Bond[], root: number): string {
  const symbol = ['', '', '=', '#'];
  const neighbours = atoms.map((_, at) => bonds.filter(({ a, b }) => a === at || b === at));
  const seen = new Set<number>();
  const used = new Set<Bond>();
  const closures = new Map<number, { digit: number; bond: Bond }[]>();
  const children: Bond[][] = atoms.map(() => []);
  let digits = 0;
  const other = (bond: Bond, at: number) => (bond.a === at ? bond.b : bond.a);
  const visit = (at: number): void => {
    seen.add(at);
    for (const bond of neighbours[at]!) {
      if (used.has(bond)) continue;
      used.add(bond);
      const to = other(bond, at);
      if (seen.has(to)) {
        digits++;
        for (const end of [at, to]) {
          closures.set(end, [...(closures.get(end) ?? []), { digit: digits, bond }]);
        }
      } else {
        children[at]!.push(bond);
        visit(to);
      }
    }
  };
  visit(root);
  const write = (at: number): string => {
    const rings = (closures.get(at) ?? []).map(({ digit, bond }) => `${symbol[bond.order]}${digit}`);
    const branches = children[at]!.map((bond) => symbol[bond.order]! + write(other(bond, at)));
    const last = branches.pop() ?? '';
    return atoms[at]!.element + rings.join('') + branches.map((branch) => `(${branch})`).join('') + last;
  };
  return write(root);
}
