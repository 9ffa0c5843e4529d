import { beforeAll, describe, expect, test } from 'vitest';
import type { Split } from '../../../../../core/refs.ts';
import type { TierAnswer } from '../../../../../core/tier-contract.ts';
import { attemptCall } from '../../../../../environments/host/tool-call.ts';
import type { Candidate, TierVerifier } from '../../../../../environments/contract/environment.ts';
import { moleculesEnvironment } from '../../../../../environments/families/molecules/environment.ts';
import { growMolecule } from '../../../../../environments/families/molecules/enumerate.ts';
import { windowScore } from '../../../../../environments/families/molecules/property-score.ts';
import {
  drawMolecule,
  loadRdkit,
  readMolecule,
} from '../../../../../environments/families/molecules/rdkit.ts';
import { promptOf, targetAt } from '../../../../../environments/families/molecules/targets.ts';
import type { Target } from '../../../../../environments/families/molecules/targets.ts';
import { hostedHere } from '../../../../../environments/host/hosted-environment.ts';

const environment = moleculesEnvironment();
beforeAll(loadRdkit);
const SPLITS: Split[] = ['train', 'heldout', 'test'];
const taskAt = (split: Split, level: number, index: number) =>
  environment.task({ environment: 'molecules', split, level, index });
const target: Target = { gap: [6, 8], dipole: [1, 2], heavyAtoms: 6, elements: ['C', 'N', 'O'] };

function candidate(answer: string | null, wanted: Target = target): Candidate {
  const task = { ...taskAt('train', 2, 0), info: { ...wanted } as never };
  return { task, answer, tools: [], episode: { turns: [], status: { kind: 'answered', answer: '' } } };
}

const verifierOf = (name: string) => environment.verifiers.find((verifier) => verifier.name === name)!;
const tier = (name: string) => verifierOf(name) as TierVerifier;

async function fast(answer: string | null, wanted: Target = target) {
  const verifier = verifierOf('molecule');
  if (verifier.tier !== 'fast') throw new Error('molecule is a fast verifier');
  const verdict = await verifier.verify(candidate(answer, wanted), { signal: new AbortController().signal });
  if (verdict.kind !== 'score') throw new Error('the fast tier does not abstain');
  return verdict;
}

const measured = (verifier: string, values: Record<string, number>): TierAnswer => ({
  format: 'gradus.verdict/1',
  verifier,
  version: '1',
  digest: '0'.repeat(64),
  spent: { seconds: 1, usd: 0 },
  kind: 'measured',
  values,
});

function scoreOf(verifier: string, values: Record<string, number>): { score: number; uncertainty?: number } {
  const verdict = tier(verifier).interpret!(candidate('CCO'), measured(verifier, values));
  if (verdict.kind !== 'score') throw new Error(verdict.reason);
  return verdict;
}

describe('molecule tasks', () => {
  test('no target of one split is a target of another', () => {
    const owner = new Map<string, Split>();
    for (const split of SPLITS) {
      for (const level of environment.levels) {
        for (let index = 0; index < 1000; index++) {
          const { prompt } = taskAt(split, level, index);
          if ((owner.get(prompt) ?? split) !== split) {
            expect.fail(`${prompt} is in ${owner.get(prompt)} and ${split}`);
          }
          owner.set(prompt, split);
        }
      }
    }
    expect(owner.size).toBeGreaterThan(5000);
  });

  test('the same coordinates give the same task and demonstration, whatever came before', () => {
    const other = moleculesEnvironment();
    for (const level of environment.levels.toReversed()) {
      const ref = { environment: 'molecules', split: 'heldout' as const, level, index: 7 };
      expect(other.task(ref)).toEqual(environment.task(ref));
      expect(other.demonstrate(other.task(ref), 3)).toEqual(
        environment.demonstrate(environment.task(ref), 3),
      );
    }
  });

  test('coordinates that do not exist are refused', () => {
    expect(() => taskAt('train', 5, 0)).toThrow('levels are 1, 2, 3, 4');
    expect(() => taskAt('train', 1, -1)).toThrow('no task -1');
  });
});

describe('enumerated molecules', () => {
  test('are all right in their valences and within the limits, more than 10,000 different ones of them', () => {
    const limits = { heavyAtoms: 8, elements: ['C', 'N', 'O', 'F'] };
    const seen = new Set<string>();
    for (let index = 0; index < 24_000; index++) {
      const smiles = growMolecule(limits, 'test', index);
      const molecule = readMolecule(smiles);
      if (molecule === null) expect.fail(`RDKit cannot read ${smiles}`);
      if (molecule.heavyAtoms > 8) expect.fail(`${smiles} is too large`);
      if (molecule.charge !== 0 || molecule.radicals !== 0) expect.fail(`${smiles} is no plain molecule`);
      if (!molecule.elements.every((element) => limits.elements.includes(element))) {
        expect.fail(`${smiles} has an element that is not allowed`);
      }
      seen.add(molecule.smiles);
    }
    expect(seen.size).toBeGreaterThan(10_000);
    const all = [...seen];
    for (const part of ['c1', '#', '=O', 'F', 'n', '1CC']) {
      expect(all.filter((smiles) => smiles.includes(part)).length).toBeGreaterThan(100);
    }
  });

  test('keep to the elements that are asked for', () => {
    for (let index = 0; index < 500; index++) {
      const molecule = readMolecule(growMolecule({ heavyAtoms: 7, elements: ['C', 'O'] }, 'oxygen', index));
      expect(molecule!.elements.every((element) => element === 'C' || element === 'O')).toBe(true);
    }
  });

  test('demonstrations answer with a molecule within the limits, and now and then look it up', async () => {
    let looked = 0;
    for (let index = 0; index < 200; index++) {
      const task = taskAt('train', 1 + (index % 4), index);
      const { turns, weight } = environment.demonstrate(task, index);
      expect(weight).toBe(1);
      if (turns.length > 1) looked++;
      expect((await fast(turns.at(-1)!.answer!, task.info as unknown as Target)).score).toBe(1);
    }
    expect(looked).toBeGreaterThan(5);
    expect(looked).toBeLessThan(50);
  });
});

describe('the fast tier', () => {
  test.each([
    ['CCO', 1, 'CCO: within the limits'],
    ['OCC', 1, 'CCO: within the limits'],
    [null, 0, 'no answer'],
    ['', 0, 'not the SMILES'],
    ['C(C)(C)(C)(C)C', 0, 'not the SMILES'],
    ['c1ccc1)', 0, 'not the SMILES'],
    ['CC O', 0, 'not the SMILES'],
    ['é'.repeat(500), 0, 'not the SMILES'],
    ['[NH4+]', 0.25, 'charged'],
    ['[CH3]', 0.25, 'unpaired'],
    ['C.C', 0.25, 'several parts'],
    ['[13CH4]', 0.25, 'isotopes'],
    ['[H][H]', 0.25, 'no heavy atom'],
    ['CF', 0.25, 'F is not allowed'],
    ['CCCCCCCC', 0.375, '8 heavy atoms, 6 are allowed'],
  ])('gives %j %d: %s', async (answer, score, why) => {
    const verdict = await fast(answer);
    expect(verdict.score).toBeCloseTo(score, 9);
    expect(verdict.evidence).toContain(why);
  });

  test('lets a duplicate be found: two ways to write a molecule are one subject, for any target', () => {
    const another: Target = { ...target, gap: [3, 4] };
    for (const name of ['xtb', 'dft']) {
      expect(tier(name).subject(candidate('C1=CC=CC=C1'))).toEqual(
        tier(name).subject(candidate('c1ccccc1', another)),
      );
      expect(tier(name).subject(candidate('CCCCCCC'))).toBeNull();
      expect(tier(name).subject(candidate('C(('))).toBeNull();
    }
    expect(tier('dft').subject(candidate('OC'))).toEqual({ smiles: 'CO', basis: 'sto-3g' });
    expect(tier('expert').subject(candidate('OC'))).toMatchObject({ smiles: 'CO' });
  });
});

test('a subject is shown as its structure, what was wanted of it, and what is known of it', async () => {
  const hosted = hostedHere(environment);
  const { signal } = new AbortController();
  const asked = tier('expert').subject(candidate('OCC=O'))!;
  const [drawing, wanted, known] = await hosted.present(asked, { signal });
  expect(drawing).toMatchObject({ kind: 'svg', alt: 'Structure of O=CCO' });
  expect(wanted).toMatchObject({
    rows: promptOf(targetAt('train', 2, 0))
      .split(', ')
      .map((part) => [
        expect.any(String) as string,
        part.replace(/^(gap|dipole) /, '').replace(/(\d)-/, '$1–'),
      ]),
  });
  expect(known).toMatchObject({
    rows: expect.arrayContaining([
      ['SMILES', 'O=CCO'],
      ['heavy atoms', 4],
    ]) as unknown,
  });
  // Of a calculation nothing is wanted.
  expect(await hosted.present({ smiles: 'CO', basis: 'sto-3g' }, { signal })).toHaveLength(2);
  expect(await hosted.present({ smiles: 'C((' }, { signal })).toMatchObject([
    { kind: 'text', text: expect.stringContaining('C((') as string },
  ]);
  await expect(hosted.present({ formula: 'CH4' }, { signal })).rejects.toThrow(
    'present() of molecules threw',
  );
});

describe('the score of a measurement', () => {
  test('is 1 in the windows, falls smoothly outside, and never abstains for being bad', () => {
    expect(scoreOf('dft', { gap_eV: 7, dipole_D: 1.5 })).toMatchObject({ score: 1, uncertainty: 0 });
    const at = (gap_eV: number) => scoreOf('dft', { gap_eV, dipole_D: 1.5 }).score;
    expect(at(8)).toBe(1);
    expect(at(8.5)).toBeCloseTo(Math.exp(-0.5), 9);
    expect(at(5.5)).toBeCloseTo(Math.exp(-0.5), 9);
    expect(at(9)).toBeLessThan(at(8.5));
    expect(at(30)).toBeGreaterThanOrEqual(0);
    expect(scoreOf('dft', { gap_eV: 8.5, dipole_D: 2.4 }).score).toBeCloseTo(Math.exp(-1), 9);
  });

  test('of the semi-empirical tier says how far it may be off', () => {
    const inside = scoreOf('xtb', { gap_eV: 4.35, dipole_D: 2.1 });
    const far = scoreOf('xtb', { gap_eV: 14, dipole_D: 2.1 });
    expect(inside.score).toBeGreaterThan(0.7);
    expect(inside.score).toBeLessThan(1);
    expect(inside.uncertainty).toBeGreaterThan(0.05);
    expect(far.score).toBeLessThan(0.01);
    expect(far.uncertainty).toBeLessThan(inside.uncertainty!);
  });

  test('is an abstention where the tier abstained or a quantity is missing', () => {
    const dft = tier('dft');
    const { kind: _, ...rest } = measured('dft', { gap_eV: 7 });
    const abstained = { ...rest, kind: 'abstained', type: 'no-convergence', reason: 'it swings' } as const;
    expect(dft.interpret!(candidate('CCO'), abstained)).toEqual({
      kind: 'abstain',
      reason: 'no-convergence: it swings',
    });
    expect(dft.interpret!(candidate('CCO'), measured('dft', { gap_eV: 7 }))).toMatchObject({
      kind: 'abstain',
    });
    expect(dft.interpret!(candidate('CCO'), measured('dft', { gap_eV: NaN, dipole_D: 1 }))).toMatchObject({
      kind: 'abstain',
    });
  });

  test('of a window is symmetric about it', () => {
    for (const off of [0, 0.1, 0.7, 3]) {
      expect(windowScore(6 - off, [6, 8], 0.5)).toBeCloseTo(windowScore(8 + off, [6, 8], 0.5), 12);
    }
  });
});

describe('molecule tools', () => {
  const call = (name: string, smiles: string) =>
    attemptCall(
      environment.tools.find((tool) => tool.name === name)!,
      { name, arguments: { smiles } },
      {
        idempotencyKey: 'test',
        attempt: 1,
        signal: new AbortController().signal,
        heartbeat: () => undefined,
        task: () => Promise.reject(new Error('no task was made')),
      },
    );

  test('validate and describe tell about molecules and refuse what is none, in words for the policy', async () => {
    expect((await call('validate', 'OCC')).text).toBe('CCO, 3 atoms of C O');
    expect((await call('describe', 'c1ccccc1O')).text).toContain('aromatic 1, donors 1, acceptors 1');
    expect(await call('validate', 'C((')).toMatchObject({ error: 'tool-error' });
    expect((await call('describe', '[NH4+].[Cl-]')).text).toBe(
      'error: several parts; one molecule is wanted',
    );
  });

  test('a molecule is drawn as SVG, and what is none is not', () => {
    expect(drawMolecule('c1ccccc1O', 200, 150)).toMatch(/^<svg[\s\S]*<\/svg>\s*$/);
    expect(drawMolecule('C((', 200, 150)).toBeNull();
  });
});
