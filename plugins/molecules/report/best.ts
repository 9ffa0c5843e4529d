import { promptOf } from '../../../environments/families/molecules/targets.ts';
import type { Target, Window } from '../../../environments/families/molecules/targets.ts';
import type { Properties } from '../../../environments/families/molecules/verifiers.ts';
import type { Design } from './designs.ts';

/** A molecule that was designed well, for the target that it meets best among those it was designed for. */
export interface BestMolecule {
  smiles: string;
  level: number;
  target: Target;
  /** By the highest verifier that measures. */
  score: number;
  /** By verifier. */
  tiers: Record<string, { score: number | null; properties: Properties }>;
}

/**
 * The best designs by a verifier's score, each molecule once. Of those that score the same, the harder task comes
 * first, then the one nearer to the middle of its windows. Targets that nothing better has been shown for are preferred.
 */
export function bestOf(designs: readonly Design[], judge: string, most: number): BestMolecule[] {
  const measured = designs.flatMap((design) => {
    const verdict = design.verdicts[judge];
    return design.smiles !== null && typeof verdict?.score === 'number' && verdict.properties !== null
      ? [{ ...design, smiles: design.smiles, score: verdict.score, properties: verdict.properties }]
      : [];
  });
  const ordered = measured.toSorted(
    (a, b) =>
      b.score - a.score ||
      b.task.level - a.task.level ||
      offCentre(a.properties, a.target) - offCentre(b.properties, b.target) ||
      (a.smiles < b.smiles ? -1 : a.smiles > b.smiles ? 1 : 0),
  );
  const seen = new Set<string>();
  const molecules = ordered.filter(({ smiles }) => !seen.has(smiles) && seen.add(smiles));
  const targets = new Set<string>();
  const [first, again]: [typeof molecules, typeof molecules] = [[], []];
  for (const one of molecules) {
    const prompt = promptOf(one.target);
    (targets.has(prompt) ? again : first).push(one);
    targets.add(prompt);
  }
  // A target that was met twice is of less interest than another one, but of more than a target that was missed.
  const met = (list: typeof molecules) => list.filter(({ score }) => score >= MET);
  const missed = (list: typeof molecules) => list.filter(({ score }) => score < MET);
  const chosen = new Set([...met(first), ...met(again), ...missed(first), ...missed(again)].slice(0, most));
  return molecules
    .filter((one) => chosen.has(one))
    .map(({ smiles, task, target, score, verdicts }) => ({
      smiles,
      level: task.level,
      target,
      score,
      tiers: Object.fromEntries(
        Object.entries(verdicts).flatMap(([name, { score, properties }]) =>
          properties === null ? [] : [[name, { score, properties }] as const],
        ),
      ),
    }));
}

/** From here on a score counts as good: a property is then at most 0.23 eV or 0.18 debye outside of its window. */
export const MET = 0.9;

/** 0 in the middle of each window, 1 at the edge of the nearest. */
function offCentre({ gap, dipole }: Properties, target: Target): number {
  const off = (value: number, [low, high]: Window) => Math.abs(value - (low + high) / 2) / ((high - low) / 2);
  return Math.max(off(gap.value, target.gap), target.dipole === null ? 0 : off(dipole.value, target.dipole));
}
