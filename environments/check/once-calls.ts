import type { ToolFacts } from '../host/facts.ts';

/** How many calls of tools that must be called once only a check has made, and how many it has left out, by tool. */
export type OnceCallCounts = Record<string, { performed: number; stubbed: number }>;

/** What the expert reads of a call that was left out, where its demonstration does not say what the tool answers. */
export const NOT_CALLED = '[not called: gradus check calls no tool that must be called once only]';

/** Decides whether a check may call a tool that must be called once only, and counts. */
export class OnceCalls {
  readonly counts: OnceCallCounts = {};
  private readonly performs: boolean;

  constructor(performs: boolean) {
    this.performs = performs;
  }

  /** Whether a call is left out. `first`: nobody has played the episode before, in this process or another. */
  leavesOut({ effect }: Pick<ToolFacts, 'effect'>, first: boolean): boolean {
    return effect === 'once' && !(this.performs && first);
  }

  count(tool: string, how: 'performed' | 'stubbed'): void {
    (this.counts[tool] ??= { performed: 0, stubbed: 0 })[how]++;
  }
}

/** Of two processes together. */
export function added(one: OnceCallCounts, other: OnceCallCounts): OnceCallCounts {
  const sum = structuredClone(one);
  for (const [tool, { performed, stubbed }] of Object.entries(other)) {
    const of = (sum[tool] ??= { performed: 0, stubbed: 0 });
    of.performed += performed;
    of.stubbed += stubbed;
  }
  return sum;
}
