import { atOnce } from '../in-pieces.ts';
import type { InPieces } from '../in-pieces.ts';
import type { ModelConfig, Weights } from '../../core/model/config.ts';
import { adaptedModules, adapterName, loraScale } from './adapter-shapes.ts';
import type { AdaptedModule } from './adapter-shapes.ts';
import type { LoraAdapter } from './adapter.ts';

/**
 * Weights that compute what base and adapter compute together: W + s B A for every adapted module. The others are the
 * base's own arrays. The same bits on every machine: the order of the sums is this one.
 */
export const mergeAdapter = (config: ModelConfig, base: Weights, adapter: LoraAdapter): Weights =>
  atOnce(mergeInPieces(config, base, adapter));

/** The same, interrupted after every few rows: seconds of work where a model has hundreds of millions of weights. */
export function* mergeInPieces(config: ModelConfig, base: Weights, adapter: LoraAdapter): InPieces<Weights> {
  const merged: Weights = new Map(base);
  for (const { module } of adaptedModules(config, adapter.lora)) {
    yield;
    const { shape, data } = base.get(`${module}.weight`)!;
    merged.set(`${module}.weight`, { shape, data: data.slice() });
  }
  yield* addInPieces(config, merged, adapter);
  return merged;
}

/** Merges into the weights that are given: the arrays of adapted modules change. */
export function* addInPieces(config: ModelConfig, weights: Weights, adapter: LoraAdapter): InPieces<void> {
  for (const module of adaptedModules(config, adapter.lora))
    yield* addModuleInPieces(weights.get(`${module.module}.weight`)!.data, module, adapter);
}

/** Merges into the weights [out, in] of one module. */
export function* addModuleInPieces(
  sum: Float32Array,
  { module, out, in: inputs }: AdaptedModule,
  { lora, weights: matrices }: LoraAdapter,
): InPieces<void> {
  const { rank } = lora;
  const scale = loraScale(lora);
  const a = Float64Array.from(matrices.get(adapterName(module, 'A'))!.data);
  const b = matrices.get(adapterName(module, 'B'))!.data;
  const row = new Float64Array(inputs);
  for (let o = 0; o < out; o++) {
    yield;
    row.fill(0);
    let r = 0;
    // Four rows of A in one pass, added in the order in which one after the other would be: a row of B A is read and
    // written a quarter as often, and that is what takes the time.
    for (; r + 4 <= rank; r += 4) addFour(row, a, r * inputs, b, o * rank + r);
    for (; r < rank; r++) addOne(row, a, r * inputs, b[o * rank + r]!);
    const at = o * inputs;
    for (let i = 0; i < inputs; i++) sum[at + i]! += scale * row[i]!;
  }
}

function addFour(row: Float64Array, a: Float64Array, at0: number, b: Float32Array, from: number): void {
  const [b0, b1, b2, b3] = [b[from]!, b[from + 1]!, b[from + 2]!, b[from + 3]!];
  // A fresh adapter has no B yet.
  if (b0 === 0 && b1 === 0 && b2 === 0 && b3 === 0) return;
  const inputs = row.length;
  const [at1, at2, at3] = [at0 + inputs, at0 + 2 * inputs, at0 + 3 * inputs];
  for (let i = 0; i < inputs; i++) {
    row[i] = row[i]! + b0 * a[at0 + i]! + b1 * a[at1 + i]! + b2 * a[at2 + i]! + b3 * a[at3 + i]!;
  }
}

function addOne(row: Float64Array, a: Float64Array, at: number, factor: number): void {
  if (factor === 0) return;
  for (let i = 0; i < row.length; i++) row[i]! += factor * a[at + i]!;
}
