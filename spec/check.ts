import type { Environment } from '../environments/contract/environment.ts';
import type { VerifierFacts } from '../environments/host/facts.ts';
import type { Resume } from '../environments/contract/session.ts';
import type { Path } from '../core/spec/strict.ts';

/** Says what is wrong with a spec, and where. */
export type Refuse = (path: Path, message: string) => void;

/** What a spec may name of an environment. */
export type SpecEnvironment = Pick<Environment, 'name' | 'levels' | 'taskCount'> & {
  verifiers: readonly Pick<VerifierFacts, 'name' | 'tier'>[];
  relabels?: boolean;
  demonstrates?: boolean;
  resume?: Resume | null;
  /** Of the shortest of some demonstrations of each level, where somebody has looked. */
  turnsOfDemonstrations?: ReadonlyMap<number, number>;
  /** Of the source of its tasks. */
  version?: string | null;
};
export type SpecEnvironments = ReadonlyMap<string, SpecEnvironment>;
