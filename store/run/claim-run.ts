import { runKey, runPrefix } from '../keys.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';
import { runClaims } from './run-claim.ts';
import type { RunClaim } from './run-claim.ts';

/**
 * Whose a name is; null where it is free. It is `'left over'` where nobody has it and something lies under it all the same:
 * activities of a run that was deleted may have written it since. Objects are written once, so that a new run would take it
 * for its own.
 */
export async function ownerOfName(
  store: ObjectStore,
  run: string,
  options: CallOptions = {},
): Promise<RunClaim | 'left over' | null> {
  const claim = await store.find(runKey(run), runClaims, options);
  if (claim) return claim;
  const { keys, folders } = await store.listFolder(runPrefix(run), options);
  return keys.length + folders.length > 0 ? 'left over' : null;
}

/** Claims a name that is free. Gives whose it is then: `claim`'s, or an earlier one's; null where something is left over. */
export async function claimRun(
  store: ObjectStore,
  run: string,
  claim: RunClaim,
  options: CallOptions = {},
): Promise<RunClaim | null> {
  const owner = await ownerOfName(store, run, options);
  if (owner === 'left over') return null;
  return owner ?? (await store.putIfAbsent(runKey(run), runClaims, claim, options)).value;
}
