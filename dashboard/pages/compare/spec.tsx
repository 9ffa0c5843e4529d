import type { FC } from 'hono/jsx';
import type { Comparison } from '../../../runs/comparison/compare.ts';
import { Table } from '../../parts/table.tsx';
import { Text } from '../../parts/text.tsx';
import { MOST_ROWS, runHeads } from './run-heads.tsx';

export const Spec: FC<{ compared: Comparison }> = ({ compared: { runs, spec } }) => (
  <>
    <h2>Differences of their specs</h2>
    {spec === null ? (
      <p>Not known: not all of the specs can be read.</p>
    ) : spec.length === 0 ? (
      <p>They differ in the run's name only.</p>
    ) : (
      <>
        <Table label="spec differences" columns={['field', ...runHeads(runs.map(({ run }) => run))]}>
          {spec.slice(0, MOST_ROWS).map(({ path, values }) => (
            <tr>
              <th scope="row">
                <Text value={path} max={300} />
              </th>
              {values.map((value) => (
                <td>{value === null ? '–' : <Text value={value} max={300} />}</td>
              ))}
            </tr>
          ))}
        </Table>
        {spec.length > MOST_ROWS && <p class="note">{spec.length - MOST_ROWS} more are not shown</p>}
      </>
    )}
  </>
);
