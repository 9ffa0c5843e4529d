import type { Json } from '../../../core/json/json.ts';
import type { Step } from './policy-engine.ts';

/** Runs of equal versions, half-open, over the tokens. `instead` names another version for all of them. */
export function spansOf(steps: readonly Step[], instead?: string): { [key: string]: Json }[] {
  const spans: { version: string; start: number; end: number }[] = [];
  for (const [at, { version: own }] of steps.entries()) {
    const version = instead ?? own;
    const last = spans.at(-1);
    if (last?.version === version) last.end = at + 1;
    else spans.push({ version, start: at, end: at + 1 });
  }
  return spans;
}
