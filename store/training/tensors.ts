import { GradusError } from '../../core/errors.ts';
import type { HostTensor, Weights } from '../../core/model/config.ts';
import type { StoredTensor } from '../../engine/safetensors/safetensors.ts';

type Shapes = readonly (readonly [name: string, shape: readonly number[]])[];

/** `weights` in the order in which they are stored, each name after `prefix`; nothing missing, nothing more. */
export function tensorsInOrder(shapes: Shapes, weights: Weights, prefix = ''): [string, HostTensor][] {
  const ordered = shapes.map(([name, shape]): [string, HostTensor] => {
    const tensor = weights.get(name);
    if (tensor?.shape.join() !== shape.join()) {
      throw mismatch(
        `${prefix}${name} is [${tensor?.shape.join(', ') ?? 'missing'}], not [${shape.join(', ')}]`,
      );
    }
    return [prefix + name, tensor];
  });
  if (weights.size !== shapes.length)
    throw mismatch('there are weights that the configuration does not know');
  return ordered;
}

/** The tensors whose names start with `prefix`, without it; F32 all of them, checked against the configuration. */
export function weightsOf(shapes: Shapes, tensors: ReadonlyMap<string, StoredTensor>, prefix = ''): Weights {
  const weights: Weights = new Map();
  for (const [name, { shape, data }] of tensors) {
    if (!name.startsWith(prefix)) continue;
    if (!(data instanceof Float32Array)) throw mismatch(`${name} is not of dtype F32`);
    weights.set(name.slice(prefix.length), { shape, data });
  }
  return new Map(tensorsInOrder(shapes, weights));
}

const mismatch = (what: string): GradusError =>
  new GradusError(
    'store',
    'weights-mismatch',
    `config.json and weights do not belong together: ${what}. Use a checkpoint that was saved whole`,
  );
