import { runKey, runPrefix } from '../keys.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';
import { runClaims } from './run-claim.ts';
import type { RunClaim } from './run-claim.ts';

/**
 * Claims a name for a run, and answers whose it is: `claim`'s, or an earlier one's. null where nobody has it and something
 * lies under it all the same: activities of a run that was deleted may still have written it, and objects are written once,
 * so that a new run would take it for its own.
 */
export async function claimRun(
  store: ObjectStore,
  run: string,
  claim: RunClaim,
  options: CallOptions = {},
): Promise<RunClaim | null> {
  const key = runKey(run);
  if (!(await store.head(key, options))) {
    const { keys, folders } = await store.listFolder(runPrefix(run), options);
    if (keys.length + folders.length > 0) return null;
  }
  return (await store.putIfAbsent(key, runClaims, claim, options)).value;
}
