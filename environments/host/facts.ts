import { z } from 'zod';
import { GradusError, messageOf } from '../../core/errors.ts';
import type { Boundary } from '../../core/errors.ts';
import type { Json } from '../../core/json/json.ts';
import type { Split } from '../../core/refs.ts';
import type { ToolDescription } from '../../engine/dialect/contract.ts';
import { toolLimitsOf } from '../contract/environment.ts';
import type { Environment, TierVerifier, Tool, ToolLimits, Verifier } from '../contract/environment.ts';
import type { Resume } from '../contract/session.ts';

// What can be known of an environment without running a line of it: plain JSON, so that it passes between processes.

export interface ToolFacts extends Pick<Tool, 'name' | 'placement' | 'effect'> {
  /** As a prompt has it. */
  described: ToolDescription;
  limits: ToolLimits;
  /** The session serves it, and not a function of its own. */
  ofSession: boolean;
}

/** Attempts that a tool may be given: a `once` tool gets one. */
export const toolAttempts = ({ effect, limits }: Pick<ToolFacts, 'effect' | 'limits'>): number =>
  effect === 'once' ? 1 : limits.maxAttempts;

/** Whether a demonstration has the tool called; of any other one it says itself what the tool answers. */
export const runsInDemonstrations = ({
  placement,
  effect,
  ofSession,
}: Pick<ToolFacts, 'placement' | 'effect' | 'ofSession'>): boolean =>
  placement === 'inline' && (ofSession || effect === 'pure');

export type VerifierFacts = Pick<Verifier, 'name' | 'version' | 'tier' | 'cost'> & {
  /** Absent for fast verifiers. */
  served?: { by: 'function' } | Exclude<TierVerifier['served'], { by: 'function' }>;
  limits?: TierVerifier['limits'];
  variables?: readonly string[];
};

/** A verifier of a tier above the fast one. */
export type TierFacts = VerifierFacts & { served: NonNullable<VerifierFacts['served']> };

/** How many tasks there are, or why that cannot be said. */
export type TaskCount = number | 'endless' | { broken: string };

export interface EnvironmentFacts {
  name: string;
  /** The module that it is from, as it was given; `Gradus` for built-in ones. */
  file: string;
  levels: readonly number[];
  tools: readonly ToolFacts[];
  verifiers: readonly VerifierFacts[];
  /** It says what other tasks an episode has solved. */
  relabels: boolean;
  /** By the level that asks for a proposal, the level of the task that it makes; null where it takes none. */
  proposals: { levels: Record<number, number> } | null;
  /** It makes other tasks of a task. */
  varies: boolean;
  /** It has experts. */
  demonstrates: boolean;
  /** It says how its subjects are shown to people. */
  presents: boolean;
  /** How its sessions come back; null where it keeps no state between calls. */
  resume: Resume | null;
  /** How long their last word may take, seconds; null where that has limits of its own. */
  endSeconds: number | null;
  /** Of the source of its tasks; null where it gives none. */
  version: string | null;
  taskCounts: Record<Split, Record<number, TaskCount>>;
}

/** How long a session's end() may take where its environment does not say. */
export const END_SECONDS = 60;

export function environmentFactsOf(environment: Environment, file: string): EnvironmentFacts {
  const { name, levels, tools, verifiers } = environment;
  const counts = (split: Split): Record<number, TaskCount> =>
    Object.fromEntries(levels.map((level) => [level, countOf(environment, split, level)]));
  return {
    name,
    file,
    levels,
    tools: tools.map(toolFacts),
    verifiers: verifiers.map(verifierFacts),
    relabels: environment.relabel !== undefined,
    proposals: environment.proposals ? { levels: { ...environment.proposals.levels } } : null,
    varies: environment.vary !== undefined,
    demonstrates: environment.demonstrate !== undefined,
    presents: environment.present !== undefined,
    resume: environment.sessions?.resume ?? null,
    endSeconds:
      environment.sessions?.endSeconds === undefined ? END_SECONDS : environment.sessions.endSeconds,
    version: environment.version ?? null,
    taskCounts: { train: counts('train'), heldout: counts('heldout'), test: counts('test') },
  };
}

export const toolFacts = (tool: Tool): ToolFacts => ({
  name: tool.name,
  placement: tool.placement,
  effect: tool.effect,
  described: describeTool(tool),
  limits: toolLimitsOf(tool),
  ofSession: tool.run === undefined,
});

function verifierFacts(verifier: Verifier): VerifierFacts {
  const { name, version, tier, cost } = verifier;
  if (verifier.tier === 'fast') return { name, version, tier, cost };
  const { served, limits, variables } = verifier;
  return {
    name,
    version,
    tier,
    cost,
    served: served.by === 'function' ? { by: 'function' } : served,
    ...(limits && { limits }),
    ...(variables && { variables }),
  };
}

function countOf(environment: Environment, split: Split, level: number): TaskCount {
  try {
    const count: unknown = environment.taskCount(split, level);
    if (count === Infinity) return 'endless';
    if (Number.isSafeInteger(count) && (count as number) >= 0) return count as number;
    return { broken: `said ${String(count)}, which is no number of tasks` };
  } catch (error) {
    return { broken: `threw: ${errorText(error)}` };
  }
}

/** A tool as a prompt describes it: what a policy may write, before defaults are filled in. */
export function describeTool({ name, description, arguments: schema }: Tool): ToolDescription {
  const json = schema instanceof z.ZodType ? z.toJSONSchema(schema, { io: 'input' }) : schema;
  const { $schema: _, ...parameters } = json;
  return {
    name,
    description,
    parameters: JSON.parse(JSON.stringify(parameters)) as { [key: string]: Json },
  };
}

/** Longest text of an error that leaves a host, in characters. */
const LONGEST_WORDS = 2000;

let placeOf: (error: unknown) => string = () => '';

/** Has `errorText` say where an error comes from, too, in this process: for whoever mends it, and not for what is stored. */
export function sayPlaces(of: (error: unknown) => string): void {
  placeOf = of;
}

/** The text of whatever users' code threw, bounded. */
export function errorText(error: unknown): string {
  return cutText(messageOf(error), LONGEST_WORDS) + placeOf(error);
}

/**
 * A GradusError that users' code threw, as it may leave a host: bounded, and of the boundary that its caller says, lest
 * a tool says that the object store is damaged.
 */
export function errorOfUsers(boundary: Boundary, error: GradusError): GradusError {
  const { type, retryable } = error as { type: unknown; retryable: unknown };
  const named = typeof type === 'string' && /^[a-z][a-z0-9-]{0,59}$/.test(type);
  return new GradusError(boundary, named ? type : 'failed', errorText(error), {
    retryable: retryable === true,
    cause: error,
  });
}

export function cutText(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit)} [cut: ${text.length} characters in all]`;
}
