import { expect, test } from 'vitest';
import { bestOf } from '../../../../../plugins/molecules/report/best.ts';
import type { Design } from '../../../../../plugins/molecules/report/designs.ts';
import { compareQuality } from '../../../../../plugins/molecules/report/quality.ts';
import { makeReport } from '../../../../../plugins/molecules/report/report.ts';
import { showReport } from '../../../../../plugins/molecules/report/tables.ts';
import { addPairs, noCalibration, predict } from '../../../../../core/ladder/calibration.ts';
import { addEntries } from '../../../../../core/ladder/ledger.ts';
import type { LedgerEntry } from '../../../../../core/ladder/ledger.ts';
import type { Target } from '../../../../../environments/families/molecules/targets.ts';
import { moleculeRecord, TIERS } from '../../../../support/molecule-record.ts';

const target: Target = { gap: [6, 8], dipole: null, heavyAtoms: 6, elements: ['C', 'O'] };
let made = 0;

interface Given {
  smiles?: string | null;
  level?: number;
  index?: number;
  wanted?: Partial<Target>;
  xtb?: number | null;
  dft?: number | null;
  gap?: number;
  basis?: string;
}
function design({ smiles = 'CO', level = 1, index = 0, wanted, gap = 7, basis, ...scores }: Given): Design {
  const properties = { gap: { value: gap, deviation: 0 }, dipole: { value: 1, deviation: 0 } };
  const verdicts: Design['verdicts'] = { molecule: { score: smiles === null ? 0 : 1, properties: null } };
  for (const [name, score] of Object.entries(scores)) {
    if (score !== undefined) verdicts[name] = { score, properties: score === null ? null : properties };
  }
  return {
    id: `rl/1/group-0000/0/${made++}`,
    stage: 'rl',
    task: { environment: 'molecules', split: 'train', level, index },
    target: { ...target, ...wanted },
    smiles,
    verdicts,
    basis: basis ?? null,
  };
}

const decision = (candidate: Design, verifier: string, kind: 'escalate' | 'defer'): LedgerEntry => ({
  kind: 'decision',
  stage: 'rl',
  step: 1,
  candidate: candidate.id,
  verifier,
  decision: kind,
  basis: null,
  value: 0.5,
  uncertainty: 0.1,
  reason: '',
  digest: candidate.smiles!,
});
const verdict = (verifier: string, digest: string, seconds: number | null): LedgerEntry => ({
  kind: 'verdict',
  stage: 'rl',
  verifier,
  version: '1',
  digest,
  result: 'measured',
  spent: seconds === null ? null : { seconds, usd: 0.5 },
  late: false,
});

const reportOf = (training: Design[], ledger: LedgerEntry[] = []) =>
  makeReport({ rungs: TIERS, judge: 'dft', training, before: [], after: [], ledger, confidence: 0.95 });

test('the funnel counts candidates by ledger and by the verdict that counted, and computations once', () => {
  const asked = design({ smiles: 'CO', xtb: 0.8, dft: 0.95, basis: 'dft' });
  const twin = design({ smiles: 'CO', xtb: 0.8, dft: 0.95, basis: 'dft' });
  // Known from an earlier run: nobody was asked, no line in the ledger.
  const known = design({ smiles: 'CCO', xtb: 0.2, basis: 'xtb' });
  const deferred = design({ smiles: 'CCC', xtb: 0.7, basis: 'xtb' });
  const unanswered = design({ smiles: 'C=C', xtb: 0.6, basis: 'xtb' });
  const abstained = design({ smiles: 'C#C', xtb: 0.9, dft: null, basis: 'xtb' });
  const none = design({ smiles: null });
  const ledger = [
    ...[asked, twin, deferred, unanswered, abstained].map((one) => decision(one, 'xtb', 'escalate')),
    decision(asked, 'dft', 'defer'),
    ...[asked, twin, unanswered, abstained].map((one) => decision(one, 'dft', 'escalate')),
    decision(deferred, 'dft', 'defer'),
    decision(deferred, 'dft', 'defer'),
    ...['CO', 'CCC', 'C=C', 'C#C'].map((digest) => verdict('xtb', digest, 0.25)),
    verdict('dft', 'CO', 3),
    verdict('dft', 'C#C', null),
  ];
  const { funnel } = reportOf([asked, twin, known, deferred, unanswered, abstained, none], ledger);
  expect(funnel).toEqual([
    {
      ...TIERS[0],
      candidates: 7,
      different: 5,
      passed: 6,
      abstained: 0,
      deferred: 0,
      waiting: 0,
      computed: null,
      seconds: null,
      usd: null,
    },
    {
      ...TIERS[1],
      candidates: 6,
      different: 5,
      passed: 5,
      abstained: 0,
      deferred: 0,
      waiting: 0,
      computed: 4,
      seconds: 1,
      usd: 2,
    },
    {
      ...TIERS[2],
      candidates: 4,
      different: 3,
      passed: 2,
      abstained: 1,
      deferred: 1,
      waiting: 1,
      computed: 1,
      seconds: 3,
      usd: 0.5,
    },
  ]);
});

test('what the tiers cost is what the ledger adds up to', () => {
  const record = moleculeRecord({ steps: 5, perStep: 32, report: 8 });
  const totals = addEntries({}, record.ledger);
  for (const { verifier, computed, seconds } of makeReport(record).funnel.slice(1)) {
    expect(computed).toBe(totals[verifier]!.computed);
    expect(seconds).toBe(totals[verifier]!.seconds);
    expect(computed).toBeGreaterThan(0);
  }
});

test('calibration has one pair for each molecule and target, the line that the ladder goes by, and what held', () => {
  const pairs = [
    [0.9, 0.95],
    [0.6, 0.5],
    [0.3, 0.2],
    [0.7, 1],
  ] as const;
  const training = pairs.map(([xtb, dft], i) =>
    design({ smiles: 'C'.repeat(i + 1), xtb, dft, basis: 'dft' }),
  );
  const again = design({ smiles: 'C', xtb: 0.9, dft: 0.95, basis: 'dft' });
  const [, last] = reportOf([...training, again, design({ xtb: 0.4, basis: 'xtb' })]).calibration;
  expect(last!.pairs).toHaveLength(4);
  const known = addPairs(noCalibration(), last!.pairs);
  expect(last!.line!.intercept + 0.5 * last!.line!.slope).toBeCloseTo(predict(known, 0.5).mean, 12);
  expect(last!.residual).toBeGreaterThan(0);
  expect(last!.passesHold).toMatchObject({ successes: 2, trials: 3 });
  const [first] = reportOf(training).calibration;
  // The fast tier passes all that goes on with the same score, which makes no line.
  expect(first).toMatchObject({
    from: 'molecule',
    to: 'xtb',
    line: null,
    passesHold: { successes: 3, trials: 4 },
  });
});

test('the best molecules are shown once, each for the target it meets best, the harder and the new targets first', () => {
  const other = { gap: [5, 9] as const };
  const best = bestOf(
    [
      design({ smiles: 'C', dft: 0.4 }),
      design({ smiles: 'C', dft: 1, level: 2, wanted: other }),
      design({ smiles: 'CC', dft: 1, level: 2, gap: 7.9, wanted: other }),
      design({ smiles: 'CO', dft: 1, level: 1 }),
      design({ smiles: 'CCO', dft: 0.95, level: 4, wanted: { gap: [1, 9] } }),
      design({ smiles: 'CCC', dft: 0.5, level: 4, wanted: { gap: [2, 9] } }),
      design({ smiles: 'CN', dft: null }),
      design({ smiles: null }),
      design({ smiles: 'CF', xtb: 1 }),
    ],
    'dft',
    3,
  );
  expect(best.map(({ smiles, score }) => [smiles, score])).toEqual([
    ['C', 1],
    ['CO', 1],
    ['CCO', 0.95],
  ]);
  expect(best[0]).toMatchObject({ level: 2, target: other, tiers: { dft: { score: 1 } } });
});

test('what is no molecule counts as zero, what could not be judged is left out, and tasks are compared with themselves', () => {
  const before = [
    design({ index: 0, dft: 0.5 }),
    design({ index: 1, smiles: null }),
    design({ index: 2, dft: null }),
    design({ index: 3, dft: 0.9 }),
  ];
  const after = [
    design({ index: 0, dft: 1 }),
    design({ index: 1, dft: 0.6 }),
    design({ index: 2, dft: 1 }),
    design({ index: 3, dft: null }),
  ];
  const { before: then, after: now, gain } = compareQuality(before, after, 'dft', 0.95);
  expect(then).toMatchObject({
    valid: { successes: 3, trials: 4 },
    score: { n: 3, mean: expect.closeTo(1.4 / 3, 12) as number },
    good: { successes: 1, trials: 3 },
    abstained: 1,
  });
  expect(now).toMatchObject({ valid: { successes: 4 }, good: { successes: 2, trials: 3 }, abstained: 1 });
  expect(gain).toMatchObject({ n: 2, mean: expect.closeTo(0.55, 12) as number });
  expect(then.score!.low).toBeGreaterThanOrEqual(0);
  expect(compareQuality(before, after, null, 0.95).after).toMatchObject({ score: null, good: null });
});

test('the terminal shows every tier, the best molecules and the gain', () => {
  const shown = showReport(makeReport(moleculeRecord({ steps: 5, perStep: 32, report: 16 })));
  for (const words of [
    'fast: RDKit',
    'simulation: xTB',
    'high-fidelity: DFT',
    'xTB → DFT',
    'best molecules',
  ]) {
    expect(shown).toContain(words);
  }
  expect(shown).toContain('gain in DFT score, task by task');
  expect(shown).not.toMatch(/NaN|undefined|Infinity/);
});
