import type { LedgerEntry } from '../../core/ladder/ledger.ts';
import { RandomStream } from '../../core/random.ts';
import { demonstrate } from '../../environments/families/molecules/demonstrate.ts';
import { moleculesEnvironment } from '../../environments/families/molecules/environment.ts';
import { propertyScore } from '../../environments/families/molecules/property-score.ts';
import { loadRdkit, readMolecule } from '../../environments/families/molecules/rdkit.ts';
import { roughEstimate } from '../../environments/families/molecules/rough-estimate.ts';
import type { Target } from '../../environments/families/molecules/targets.ts';
import type { Design, TierVerdict } from '../../plugins/molecules/report/designs.ts';
import type { RunRecord } from '../../plugins/molecules/report/report.ts';

await loadRdkit();

/** Tiers as in the README's ladder. */
export const TIERS = [
  { verifier: 'molecule', tier: 'fast', passAtLeast: 1 },
  { verifier: 'xtb', tier: 'simulation', passAtLeast: 0.5 },
  { verifier: 'dft', tier: 'high-fidelity', passAtLeast: 0.9 },
] as const;

/** What a run of some steps may have left, with estimates at a glance in place of calculations. */
export function moleculeRecord(options: { steps: number; perStep: number; report: number }): RunRecord {
  const training: Design[] = [];
  const ledger: LedgerEntry[] = [];
  const asked = new Set<string>();
  for (let step = 1; step <= options.steps; step++) {
    for (let sample = 0; sample < options.perStep; sample++) {
      const design = designOf('rl', step, sample, 'train', 0.1);
      training.push(design);
      escalated(design, step);
    }
  }
  const report = (stage: string, invalid: number) =>
    Array.from({ length: options.report }, (_, i) => designOf(stage, 0, i, 'test', invalid));
  return {
    rungs: TIERS,
    judge: 'dft',
    training,
    before: report('before', 0.4),
    after: report('after', 0.05),
    ledger,
    confidence: 0.95,
  };

  /** As the ladder would book it: what passed goes on, every seventh wish finds no budget. */
  function escalated(design: Design, step: number): void {
    for (let tier = 1; tier < TIERS.length; tier++) {
      const below = design.verdicts[TIERS[tier - 1]!.verifier]?.score ?? 0;
      const { verifier, passAtLeast: _ } = TIERS[tier]!;
      const passed = below >= TIERS[tier - 1]!.passAtLeast;
      const defer = passed && tier === 2 && training.length % 7 === 0;
      if (!passed || defer) {
        for (const above of TIERS.slice(tier)) delete design.verdicts[above.verifier];
      }
      if (!passed) return;
      ledger.push({
        kind: 'decision',
        stage: 'rl',
        step,
        candidate: design.id,
        verifier,
        decision: defer ? 'defer' : 'escalate',
        basis: { rung: tier - 1, verifier: TIERS[tier - 1]!.verifier, score: below },
        value: below,
        uncertainty: 0.2,
        reason: 'passed',
        digest: design.smiles!,
      });
      if (defer) return;
      design.basis = verifier;
      if (asked.has(`${verifier}/${design.smiles}`)) continue;
      asked.add(`${verifier}/${design.smiles}`);
      const spent = { seconds: tier === 1 ? 0.2 : 2.4, usd: 0 };
      const { score } = design.verdicts[verifier]!;
      const result = score === null ? 'abstained' : 'measured';
      ledger.push({
        kind: 'verdict',
        stage: 'rl',
        verifier,
        version: '1',
        digest: design.smiles!,
        result,
        spent,
        late: false,
      });
    }
  }
}

/** An answer of the demonstrations, or no molecule at all. */
function designOf(
  stage: string,
  step: number,
  sample: number,
  split: 'train' | 'test',
  invalid: number,
): Design {
  const random = new RandomStream('test', 'molecule-record', stage, step, sample);
  const ref = {
    environment: 'molecules',
    split,
    level: 1 + (sample % 4),
    index: split === 'test' ? sample : 10 * step + Math.floor(sample / 8),
  };
  const task = moleculesEnvironment().task(ref);
  const target = task.info as unknown as Target;
  const id = `${stage}/${step}/group-0000/${sample}/0`;
  const design: Design = { id, stage, task: ref, target, smiles: null, verdicts: {}, basis: null };
  if (random.uniform() < invalid) {
    design.verdicts['molecule'] = { score: 0, properties: null };
    return design;
  }
  const { turns } = demonstrate(task, 100 * step + sample);
  const last = turns.at(-1)!;
  const molecule = readMolecule('answer' in last ? last.answer : '')!;
  const rough = roughEstimate(molecule);
  const near = (deviation: number): TierVerdict => {
    const noise = () => (random.uniform() + random.uniform() - 1) * 1.2;
    const gap = { value: rough.gap_eV + noise() * 0.5, deviation: deviation * 0.82 };
    const dipole = { value: Math.max(0, rough.dipole_D + noise() * 0.4), deviation: deviation * 0.42 };
    return { score: propertyScore(target, { gap, dipole }).score, properties: { gap, dipole } };
  };
  design.smiles = molecule.smiles;
  design.verdicts = {
    molecule: { score: 1, properties: null },
    xtb: near(1),
    dft: random.uniform() < 0.03 ? { score: null, properties: null } : near(0),
  };
  return design;
}
