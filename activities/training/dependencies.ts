import type { Environments } from '../../environments/host/environment-of.ts';
import type { TinkerServer } from './tinker/capabilities.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';

export interface CurriculumDependencies {
  store: ObjectStore;
  environments: Environments;
  /** What the server of Tinker's API can that trains in the learner's place; absent where our own learner does. */
  tinker?: ((signal: AbortSignal) => Promise<TinkerServer>) | undefined;
}
