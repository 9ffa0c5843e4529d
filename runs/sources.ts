import type { Client } from '@temporalio/client';
import type { ObjectStore } from '../store/objects/object-store.ts';

/** Where runs are looked at: the store has what they keep, Temporal what they are at. Either may be away for a while. */
export interface Sources {
  /** Opened to read: nothing is created, nothing is tried. */
  store: ObjectStore;
  temporal: Client;
}
