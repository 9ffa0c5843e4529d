import type { FC } from 'hono/jsx';
import { armName } from '../../../core/names.ts';
import type { Comparison } from '../../../runs/comparison/compare.ts';
import { shortNumber } from '../../../svg/charts.ts';
import { Success, duration } from '../../parts/numbers.tsx';
import { Table } from '../../parts/table.tsx';
import { Text } from '../../parts/text.tsx';
import { NAMES } from './asking.ts';
import { runHeads } from './run-heads.tsx';

export const Overview: FC<{ compared: Comparison }> = ({ compared: { runs, heldOut } }) => (
  <>
    <h2>Results</h2>
    <Table label="runs" columns={['', ...runHeads(runs.map(({ run }) => run))]}>
      <tr>
        <th scope="row">steps</th>
        {runs.map(({ steps }) => (
          <td>{steps}</td>
        ))}
      </tr>
      <tr>
        <th scope="row">{NAMES.tokens}</th>
        {runs.map(({ tokens }) => (
          <td>{shortNumber(tokens)}</td>
        ))}
      </tr>
      <tr>
        <th scope="row">{NAMES.time}</th>
        {runs.map(({ seconds }) => (
          <td>{duration(seconds)}</td>
        ))}
      </tr>
      {heldOut.map(({ arm, of }) => (
        <tr>
          <th scope="row">
            held-out, <Text value={armName(arm)} max={100} />
          </th>
          {of.map((one) => (
            <td>
              {one === null ? (
                '–'
              ) : (
                <>
                  <Success of={one} /> <small>after step {one.step}</small>
                </>
              )}
            </td>
          ))}
        </tr>
      ))}
    </Table>
  </>
);
