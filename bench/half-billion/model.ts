import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { TYPESCRIPT } from '../../engine/own-module.ts';
import { writeTinyQwen } from '../../test/support/tiny-qwen.ts';
import type { BenchOptions } from '../bench.ts';
import { calculatorTokenizer } from '../engine/handover.ts';

const MAKE_FULL_SIZE = fileURLToPath(new URL('../../test/parity/models/make-full-size.ts', import.meta.url));

/** A folder with a model of Qwen2.5-0.5B's shape and random weights, as a user would bring it; `quick` has some thousand weights. */
export async function writeModel(folder: string, { quick }: Pick<BenchOptions, 'quick'>): Promise<void> {
  if (quick) await writeTinyQwen(folder, calculatorTokenizer(), { maxPositions: 256 });
  else await writeFullSize(folder);
}

/** The same shape and vocabulary at another width, a multiple of 64; Qwen2.5-0.5B has 896. */
export async function writeFullSize(folder: string, hiddenSize = 896): Promise<void> {
  const args = ['--import', TYPESCRIPT, MAKE_FULL_SIZE, folder, '--hidden-size', String(hiddenSize)];
  await promisify(execFile)(process.execPath, args);
}
