import { sha256Hex } from '../../store/digest.ts';
import { runKey } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';

/**
 * What a run is known by in caches: a digest of where its store is and of the claim to its name, which says the first
 * execution. A run that was deleted and made anew under its name is another one.
 */
export async function runIdentity(store: ObjectStore, run: string): Promise<string> {
  const claim = await store.head(runKey(run));
  const parts = [store.address, store.bucket, run, claim?.sha256 ?? null];
  return sha256Hex(new TextEncoder().encode(JSON.stringify(parts)));
}
