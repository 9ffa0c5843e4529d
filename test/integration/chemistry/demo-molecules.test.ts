import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import getPort from 'get-port';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureChemistry } from '../../../plugins/molecules/chemistry/python.ts';
import { runCommand } from '../../../infra/setup/command.ts';
import { xmlProblem } from '../../support/well-formed.ts';

// The command as people start it, with real calculations, on a spec that learns next to nothing.

const tasks = [{ environment: 'molecules', levels: [1] }];
const spec = {
  seed: 1,
  model: {
    vocabSize: 512,
    hiddenSize: 64,
    intermediateSize: 128,
    layers: 2,
    attentionHeads: 2,
    keyValueHeads: 1,
    headSize: 32,
  },
  sampling: { maxTurns: 2, maxCompletionTokens: 48 },
  reward: { components: [{ verifier: 'ladder', role: 'outcome' }] },
  verification: {
    rungs: [
      { verifier: 'molecule', passAtLeast: 1 },
      { verifier: 'xtb', passAtLeast: 0.2 },
      { verifier: 'dft', passAtLeast: 0.9, wait: false, budget: { count: 2 } },
    ],
  },
  stages: [
    {
      kind: 'supervised',
      name: 'warm-start',
      tasks,
      minibatch: 16,
      updatesPerRound: 120,
      maxRounds: 1,
      optimizer: { learningRate: 0.005 },
      graduation: { successAtLeast: 0, tasksPerLevel: 8 },
    },
    {
      name: 'design',
      tasks,
      groupsPerStep: 4,
      numGenerations: 8,
      maxSteps: 2,
      algorithm: { minibatch: 32 },
      graduation: { successAtLeast: 0.7, tasks: 8, everySteps: 2 },
    },
  ],
  evaluation: { tasks, count: 4 },
};

interface Tier {
  verifier: string;
  candidates: number;
  passed: number;
  computed: number | null;
  seconds: number | null;
}
interface Line {
  end: string;
  chemistry: boolean;
  judged: Record<string, Record<'before' | 'after', { computed: number; seconds: number }>> | null;
  report: {
    funnel: Tier[];
    best: { smiles: string; score: number }[];
    quality: Record<'before' | 'after', { valid: { trials: number }; score: { n: number } | null }>;
  };
  page: string;
}

let folder: string;
beforeAll(async () => {
  await ensureChemistry((text) => process.stderr.write(`setup: ${text}\n`));
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-demo-molecules-'));
  await writeFile(path.join(folder, 'tiny.json'), JSON.stringify(spec));
}, 600_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

test('the demo trains up the ladder, has its report judged by DFT, and draws the page', async () => {
  const command = path.resolve('demos/molecules.ts');
  const page = path.join(folder, 'page.svg');
  const ports = ['--temporal-port', '--ui-port', '--s3-port'];
  const flags = await Promise.all(
    ports.map(async (flag) => [flag, String(await getPort({ host: '127.0.0.1' }))]),
  );
  const files = ['--spec', path.join(folder, 'tiny.json'), '--state-dir', path.join(folder, 'state')];
  const program = ['--import', 'tsx', command, ...files, '--page', page, '--json', ...flags.flat()];
  const { code, stdout, stderr } = await runCommand(process.execPath, program);
  expect(code, stderr).toBe(0);
  expect(stdout.trim().split('\n')).toHaveLength(1);
  const line = JSON.parse(stdout) as Line;
  expect(line).toMatchObject({ end: 'completed', chemistry: true, page });

  const [fast, xtb, dft] = line.report.funnel as [Tier, Tier, Tier];
  expect(fast.candidates).toBe(2 * 4 * 8);
  expect(xtb.candidates).toBe(fast.passed);
  expect(xtb.computed).toBeGreaterThan(0);
  expect(xtb.seconds).toBeGreaterThan(0);
  expect(dft.computed).toBeLessThanOrEqual(2);
  // Each answer of the report has a verdict, or is no molecule; each stage was judged by itself.
  const { before, after } = line.report.quality;
  expect([before.valid.trials, after.valid.trials]).toEqual([4, 4]);
  expect(before.score!.n + after.score!.n).toBeGreaterThan(0);
  for (const { computed, seconds } of Object.values(line.judged!['dft']!)) {
    expect(computed).toBeLessThanOrEqual(4);
    expect(seconds > 0).toBe(computed > 0);
  }

  expect(stderr).toContain('high-fidelity: DFT');
  const svg = await readFile(page, 'utf8');
  expect(xmlProblem(svg)).toBeUndefined();
  for (const { smiles } of line.report.best) expect(svg).toContain(smiles);
});
