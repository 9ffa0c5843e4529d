import type { FC } from 'hono/jsx';
import type { Comparison } from '../../../runs/comparison/compare.ts';
import { Scroll } from '../../parts/scroll.tsx';
import { Text } from '../../parts/text.tsx';
import { TableHeads, MOST_ROWS } from './table.tsx';

export const Spec: FC<{ compared: Comparison }> = ({ compared: { runs, spec } }) => (
  <>
    <h2>Differences of their specs</h2>
    {spec === null ? (
      <p>Not known: not all of the specs can be read.</p>
    ) : spec.length === 0 ? (
      <p>They differ in the run's name only.</p>
    ) : (
      <Scroll label="spec differences">
        <table>
          <TableHeads first="field" runs={runs.map(({ run }) => run)} />
          <tbody>
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
          </tbody>
        </table>
        {spec.length > MOST_ROWS && <p class="note">{spec.length - MOST_ROWS} more are not shown</p>}
      </Scroll>
    )}
  </>
);
