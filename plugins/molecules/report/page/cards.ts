import type { Tier } from '../../../../core/episode/outcome.ts';
import type { PropertyEstimate } from '../../../../environments/families/molecules/property-score.ts';
import { drawMolecule, loadRdkit } from '../../../../environments/families/molecules/rdkit.ts';
import type { Target, Window } from '../../../../environments/families/molecules/targets.ts';
import type { BestMolecule } from '../best.ts';
import { toolName } from '../names.ts';
import { dot, embedSvg, group, line, path, rect, text, widthOf } from '../../../../svg/elements.ts';

await loadRdkit();

const GAP = 16;
const PER_ROW = 4;
const DRAWING = 150;
const HEIGHT = 348;

/** The drawing's own background. */
const PAPER = /<rect [^>]*fill:#FFFFFF[^>]*>\s*<\/rect>/;

/** By verifier, its tier: which decides its colour and mark. */
export type Tiers = Readonly<Record<string, Tier>>;

/** The molecules in rows of cards: structure, target, and each property by tier against the window that was wanted. */
export function cards(width: number, molecules: readonly BestMolecule[], judge: string, tiers: Tiers) {
  const box = (width - (PER_ROW - 1) * GAP) / PER_ROW;
  const parts = molecules.map((molecule, i) =>
    group(
      (i % PER_ROW) * (box + GAP),
      Math.floor(i / PER_ROW) * (HEIGHT + GAP),
      card(box, molecule, i, judge, tiers),
    ),
  );
  const rows = Math.ceil(molecules.length / PER_ROW);
  return { height: rows * (HEIGHT + GAP) - GAP, parts };
}

function card(width: number, molecule: BestMolecule, at: number, judge: string, tiers: Tiers): string[] {
  const { smiles, level, target, score } = molecule;
  const inner = width - 24;
  const drawing = drawMolecule(smiles, inner, DRAWING);
  const wanted = [
    `gap ${range(target.gap)} eV`,
    ...(target.dipole === null ? [] : [`dipole ${range(target.dipole)} D`]),
  ];
  return [
    rect(0, 0, width, HEIGHT, 'panel', 8),
    // Structures are drawn for white paper, and stay on it.
    rect(12, 12, inner, DRAWING, 'paper', 4),
    ...(drawing === null ? [] : [embedSvg(drawing.replace(PAPER, ''), `molecule-${at}`, 12, 12)]),
    text(12, 184, smiles, { mono: true, bold: true, maxWidth: inner - 84 }),
    text(width - 12, 184, `${toolName(judge)} ${score.toFixed(3)}`, { anchor: 'end', bold: true }),
    text(12, 204, wanted.join(', '), { size: 12, className: 'muted', maxWidth: inner }),
    text(12, 220, `level ${level}: up to ${target.heavyAtoms} atoms of ${target.elements.join(' ')}`, {
      size: 12,
      className: 'muted',
      maxWidth: inner,
    }),
    group(12, 234, property(inner, 'gap', 'eV', molecule, tiers)),
    group(12, 290, property(inner, 'dipole', 'D', molecule, tiers)),
  ];
}

const range = ([low, high]: Window): string => `${low.toFixed(1)}–${high.toFixed(1)}`;

/** What each tier found, on a track with the window. */
function property(
  width: number,
  name: 'gap' | 'dipole',
  unit: string,
  { tiers, target }: BestMolecule,
  kinds: Tiers,
): string[] {
  const found = Object.entries(tiers).map(([verifier, { properties }]) => ({
    verifier,
    kind: kinds[verifier] ?? 'simulation',
    estimate: properties[name],
  }));
  const scale = scaleOf(
    width,
    target[name],
    found.map(({ estimate }) => estimate),
  );
  const window: Target['gap'] | null = target[name];
  let right = width;
  const labels = found.toReversed().map(({ verifier, kind, estimate }) => {
    const words = `${toolName(verifier)} ${show(estimate)}`;
    const label = text(right, 14, words, { size: 12, className: kind, anchor: 'end' });
    right -= widthOf(words, 12) + 8;
    return label;
  });
  return [
    text(0, 14, window === null ? `any ${name}` : `${name}, ${unit}`, { size: 11, className: 'muted' }),
    ...labels,
    rect(0, 22, width, 20, 'track', 4),
    ...(window === null
      ? []
      : [rect(scale(window[0]), 22, scale(window[1]) - scale(window[0]), 20, 'window')]),
    ...found.flatMap(({ kind, estimate: { value, deviation } }) => {
      const [x, y] = [scale(value), kind === 'high-fidelity' ? 37 : 28];
      return [
        ...(deviation > 0
          ? [line(scale(value - deviation), y, scale(value + deviation), y, `${kind}-line`)]
          : []),
        kind === 'high-fidelity' ? path(diamond(x, y, 5), kind) : dot(x, y, 4, kind),
      ];
    }),
  ];
}

const show = ({ value, deviation }: PropertyEstimate): string =>
  deviation > 0 ? `${value.toFixed(2)} ± ${deviation.toFixed(2)}` : value.toFixed(2);

const diamond = (x: number, y: number, r: number): [number, number][] => [
  [x, y - r],
  [x + r, y],
  [x, y + r],
  [x - r, y],
];

/** Pixels of a value: the window and every estimate have room. */
function scaleOf(
  width: number,
  window: Window | null,
  estimates: readonly PropertyEstimate[],
): (value: number) => number {
  const ends = [
    ...(window ?? []),
    ...estimates.flatMap(({ value, deviation }) => [value - deviation, value + deviation]),
  ];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const margin = Math.max(0.1, (high - low) * 0.08);
  return (value) => ((value - low + margin) / (high - low + 2 * margin)) * width;
}
