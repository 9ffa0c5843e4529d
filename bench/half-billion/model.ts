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
  else await promisify(execFile)(process.execPath, ['--import', TYPESCRIPT, MAKE_FULL_SIZE, folder]);
}
