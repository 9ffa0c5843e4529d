import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { loadHfDirectory } from '../../../../engine/hf-directory.ts';
import { readSafetensors } from '../../../../engine/safetensors/safetensors.ts';

const folder = path.resolve(import.meta.dirname, '../../../fixtures/models');

/** Models that `npm run parity` made with transformers, one folder each. */
export const cases: readonly string[] = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

/** A model and what PyTorch computed of it; see test/parity/models/make_fixtures.py. */
export async function fixture(name: string) {
  const model = await loadHfDirectory(path.join(folder, name));
  const { tensors } = readSafetensors(readFileSync(path.join(folder, name, 'expected.safetensors')));
  const floats = (key: string) => tensors.get(key)!.data as Float32Array;
  const gradients = [...tensors].flatMap(([key, { data }]): [string, Float32Array][] =>
    key.startsWith('grad.') ? [[key.slice('grad.'.length), data as Float32Array]] : [],
  );
  return {
    ...model,
    tokens: [...(tensors.get('input_ids')!.data as Int32Array)],
    /** [T, V], row-major. */
    logits: floats('logits'),
    /** [T − 1], of each token after the first. */
    logprobs: floats('logprobs'),
    greedy: [...(tensors.get('greedy')!.data as Int32Array)],
    gradients: new Map(gradients),
  };
}

export const PROMPT = 12;

export const largestDifference = (a: ArrayLike<number>, b: ArrayLike<number>): number => {
  if (a.length !== b.length) return Infinity;
  let largest = 0;
  for (let i = 0; i < a.length; i++) {
    const difference = Math.abs(a[i]! - b[i]!);
    // NaN must not pass for small.
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
};
