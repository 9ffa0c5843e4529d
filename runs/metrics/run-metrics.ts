import type { Sources } from '../sources.ts';
import { familiesOf } from './families.ts';
import type { Family } from './families.ts';
import { MetricsReader } from './snapshot.ts';

/** Who collects again within this time gets the same. */
const FRESH_MS = 5000;

/** Reads the metrics of all runs, for whoever collects them. */
export function runMetrics(sources: Sources): () => Promise<Family[]> {
  const reader = new MetricsReader(sources);
  let last: { at: number; families: Promise<Family[]> } | undefined;
  return async () => {
    if (last === undefined || performance.now() - last.at > FRESH_MS) {
      last = { at: performance.now(), families: reader.read().then(familiesOf) };
      last.families.catch(() => (last = undefined));
    }
    return last.families;
  };
}
