import type { Tier } from '../episode/outcome.ts';
import type { Split } from '../refs.ts';
import type { Path } from './strict.ts';

/** Says what is wrong with a spec, and where. */
export type Refuse = (path: Path, message: string) => void;

/** How the session of an environment comes back after the process that held it is gone (ADR 0044). */
export type Resume = 'fold' | 'replay' | 'pin' | 'snapshot' | 'reattach';

/** What a spec may name of an environment. */
export interface SpecEnvironment {
  name: string;
  levels: readonly number[];
  taskCount(split: Split, level: number): number;
  verifiers: readonly { name: string; tier: Tier }[];
  relabels?: boolean;
  /** By the level that asks for a proposal, the level of the task that it makes. */
  proposals?: { levels: Readonly<Record<number, number>> } | null | undefined;
  /** It makes other tasks of a task. */
  varies?: boolean;
  demonstrates?: boolean;
  resume?: Resume | null;
  /** Of the shortest of some demonstrations of each level, where somebody has looked. */
  turnsOfDemonstrations?: ReadonlyMap<number, number>;
  /** Of the source of its tasks. */
  version?: string | null;
}
export type SpecEnvironments = ReadonlyMap<string, SpecEnvironment>;
