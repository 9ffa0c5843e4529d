import type { Environments } from '../../environments/host/environment-of.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';

export interface CurriculumDependencies {
  store: ObjectStore;
  environments: Environments;
}
