import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { Objective } from '../../../../../core/algorithms/objective.ts';
import { RandomStream } from '../../../../../core/random.ts';
import type { TrainBatch } from '../../../../../engine/learner/contract.ts';
import { findOnPath } from '../../../../../infra/setup/command.ts';
import { encodeBatch } from '../../../../../store/training/batches.ts';
import { taggedBlock } from '../../../../support/markdown.ts';
import { learnerOfFile } from '../learner-of-file.ts';
import { freshState, GRPO, randomBatch, settings } from '../../../../support/engine/tiny.ts';

// What docs/batch.md says of a step is enough for a learner in another language: its own Python gives the learner's loss.

const learner = await learnerOfFile('eager');
const folder = mkdtempSync(path.join(tmpdir(), 'gradus-batch-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const from = { temperature: 0.9, topK: 0 };
const OBJECTIVES: Objective[] = [
  { ...GRPO, ...from, importanceCap: 1.5, importanceRule: 'mask', beta: 0.1, aggregation: 'sequence' },
  { ...GRPO, ...from, importanceCap: 1.2, aggregation: 'dr-grpo' },
  { ...GRPO, ...from, importanceCap: 5, importanceFloor: 0.5, importanceRule: 'mask' },
  { ...GRPO, ...from, importanceCap: 2, importanceFloor: 0.8 },
  {
    ...GRPO,
    ...from,
    importanceCap: 2,
    importanceRule: 'difference',
    differenceLow: 0.02,
    differenceHigh: 0.02,
  },
  { ...GRPO, ...from, beta: 0.5 },
  { kind: 'dpo', ...from, variant: 'sigmoid', beta: 0.3, labelSmoothing: 0.1 },
  { kind: 'dpo', ...from, variant: 'ipo', beta: 0.5, labelSmoothing: 0 },
];

/** Two updates that share sequences, of which one has no pair; or of which two are branches of one episode. */
function batchOf({ kind }: Objective): TrainBatch {
  const batch = randomBatch(5);
  const random = new RandomStream(5, 'reference');
  return {
    ...batch,
    streams: { ...batch.streams, reference: batch.mask.map(() => -3 + random.uniform()) },
    sequences:
      kind === 'dpo'
        ? { pair: Float32Array.of(0, 1, 0, 1, -1), label: Float32Array.of(1, -1, -1, 1, 0) }
        : { episode: Float32Array.of(0, -1, 0, -1, -1) },
    updates: [Int32Array.of(0, 2, 4), Int32Array.of(3, 0, 1, 4, 2)],
  };
}

it.each(OBJECTIVES.map((objective): [string, Objective] => [JSON.stringify(objective), objective]))(
  'the Python of docs/batch.md gives the loss of the updates: %s',
  async (_, objective) => {
    const batch = batchOf(objective);
    const told = settings(objective, { optimizer: { ...settings(objective).optimizer, learningRate: 0.02 } });
    const parent = freshState();
    const [first] = batch.updates;
    const between = await learner.step(parent, { ...batch, updates: [first!] }, told);
    const both = await learner.step(parent, batch, told);

    const bySequence = async (state: typeof parent): Promise<number[][]> => {
      const { logprobs } = await learner.score(state, batch, { logprobs: from });
      return [...batch.offsets.subarray(1)].map((end, i) => [...logprobs!.subarray(batch.offsets[i], end)]);
    };
    const old = await bySequence(parent);
    const now = [old, await bySequence(between.state)];
    const file = path.join(folder, 'batch.safetensors');
    writeFileSync(file, encodeBatch(batch));
    const program =
      taggedBlock('docs/batch.md', 'batch-reader') + taggedBlock('docs/batch.md', 'batch-losses');
    const python = await findOnPath('python3');
    const { stdout, stderr } = spawnSync(
      python!,
      ['-c', program, file, JSON.stringify({ objective, old, now })],
      { encoding: 'utf8' },
    );
    expect(stderr).toBe('');
    const losses = JSON.parse(stdout.trim().split('\n').at(-1)!) as number[];
    const close = (a: number, b: number) =>
      expect(Math.abs(a - b)).toBeLessThan(1e-5 * Math.max(1, Math.abs(b)));
    close(losses[0]!, between.metrics.loss!);
    close((losses[0]! + losses[1]!) / 2, both.metrics.loss!);
    // The second update is another one than the first, and starts elsewhere.
    expect(Math.abs(losses[0]! - losses[1]!)).toBeGreaterThan(1e-3);
  },
);
