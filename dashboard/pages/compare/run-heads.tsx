import { runAt } from '../../address.ts';
import { Text } from '../../parts/text.tsx';

export const MOST_ROWS = 200;

/** The heads of a column for each run. */
export const runHeads = (runs: readonly string[]) =>
  runs.map((run) => (
    <a href={runAt(run)}>
      <Text value={run} max={100} />
    </a>
  ));
