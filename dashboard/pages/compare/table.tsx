import type { FC } from 'hono/jsx';
import { runAt } from '../../address.ts';
import { Text } from '../../parts/text.tsx';

export const MOST_ROWS = 200;

export const TableHeads: FC<{ first: string; runs: readonly string[] }> = ({ first, runs }) => (
  <thead>
    <tr>
      <th scope="col">{first}</th>
      {runs.map((run) => (
        <th scope="col">
          <a href={runAt(run)}>
            <Text value={run} max={100} />
          </a>
        </th>
      ))}
    </tr>
  </thead>
);
