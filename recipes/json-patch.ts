import { GradusError } from '../core/errors.ts';
import type { Json } from '../core/json/json.ts';

/** Of JSON Patch (RFC 6902) the operations that say what differs between two specs. */
export type PatchOperation =
  { op: 'add' | 'replace'; path: string; value: Json } | { op: 'remove'; path: string };

/**
 * A document with a patch applied, which is left as it was. Throws GradusError('spec', 'patch') where a path leads
 * nowhere: a control that silently equals its treatment would compare nothing.
 */
export function applyPatch(document: Json, patch: readonly PatchOperation[]): Json {
  const whole = structuredClone(document);
  for (const operation of patch) apply(whole, operation);
  return whole;
}

function apply(whole: Json, operation: PatchOperation): void {
  const { op, path } = operation;
  const nowhere = (): never => {
    throw new GradusError('spec', 'patch', `nothing to ${op} at ${path}: the path leads nowhere`);
  };
  const names = path
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
  const last = names.pop();
  if (last === undefined || !path.startsWith('/')) return nowhere();
  let parent: Json | undefined = whole;
  for (const name of names) parent = (parent as Record<string, Json> | null)?.[name];
  if (typeof parent !== 'object' || parent === null) return nowhere();
  if (op !== 'add' && !Object.hasOwn(parent, last)) return nowhere();
  if (Array.isArray(parent)) {
    const at = last === '-' ? parent.length : Number(last);
    if (!Number.isInteger(at) || at < 0 || at > parent.length) return nowhere();
    if (op === 'remove') parent.splice(at, 1);
    else parent.splice(at, op === 'replace' ? 1 : 0, operation.value);
  } else if (op === 'remove') Reflect.deleteProperty(parent, last);
  else parent[last] = operation.value;
}
