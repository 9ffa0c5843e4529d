import { callAndResult } from '../../core/episode/call-and-result.ts';
import { callByCall } from '../../core/episode/call-by-call.ts';
import type { FastVerifier } from '../contract/environment.ts';

export interface ToolShapingOptions {
  /** Taken off for each call that repeats an earlier one and is answered as that was. */
  duplicate?: number;
  /** Taken off for each call of a tool that does not exist. */
  unknownTool?: number;
  /** Taken off for each malformed turn. */
  malformed?: number;
  /** The most that can be taken off. */
  cap?: number;
}

/** 1 less a capped penalty for clumsy use of tools. It says nothing about whether the answer is right. */
export function toolShaping(options: ToolShapingOptions = {}): FastVerifier {
  const { duplicate = 0.1, unknownTool = 0.2, malformed = 0.2, cap = 0.5 } = options;
  return {
    name: 'tool-shaping',
    version: `2;duplicate=${duplicate};unknown=${unknownTool};malformed=${malformed};cap=${cap}`,
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    verify: ({ episode, tools }) => {
      const seen = new Set<string>();
      const counts = { duplicate: 0, unknown: 0, malformed: 0 };
      for (const turn of episode.turns.flatMap(callByCall)) {
        const { action } = turn;
        if (action.kind === 'malformed') counts.malformed++;
        if (action.kind === 'call' && !tools.includes(action.call.name)) counts.unknown++;
        const done = callAndResult(turn);
        if (done === null) continue;
        if (seen.has(done)) counts.duplicate++;
        seen.add(done);
      }
      const penalty =
        counts.duplicate * duplicate + counts.unknown * unknownTool + counts.malformed * malformed;
      return {
        kind: 'score',
        score: Math.max(0, 1 - Math.min(cap, penalty)),
        evidence: `${counts.duplicate} duplicate, ${counts.unknown} unknown, ${counts.malformed} malformed`,
      };
    },
  };
}
