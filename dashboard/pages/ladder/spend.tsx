import type { FC } from 'hono/jsx';
import type { LadderView } from '../../../runs/ladder/ladder.ts';
import { dollars, duration, NumberCell } from '../../parts/numbers.tsx';
import { Text } from '../../parts/text.tsx';
import { Table } from '../../parts/table.tsx';

export const Spend: FC<{ view: LadderView }> = ({ view: { ledger } }) => {
  const rows = Object.entries(ledger.stages).flatMap(([stage, totals]) =>
    Object.entries(totals).flatMap(([verifier, sum]) =>
      sum.computed + sum.shared + sum.lost > 0 ? [{ stage, verifier, sum }] : [],
    ),
  );
  if (rows.length === 0) return null;
  return (
    <>
      <h2>Where it was spent</h2>
      <Table
        caption="By stage or evaluation"
        columns={[
          'stage',
          'tier',
          'computed',
          'shared',
          'time',
          'reviews open',
          'cost',
          'lost attempts took',
        ]}
      >
        {rows.map(({ stage, verifier, sum }) => (
          <tr>
            <td>
              <Text value={stage} max={100} />
            </td>
            <td>
              <Text value={verifier} max={100} />
            </td>
            <NumberCell value={sum.computed} />
            <NumberCell value={sum.shared} />
            <td class="number">{duration(sum.seconds)}</td>
            <td class="number">{sum.openSeconds === 0 ? '–' : duration(sum.openSeconds)}</td>
            <td class="number">{dollars(sum.usd)}</td>
            <td class="number">{duration(sum.lostSeconds)}</td>
          </tr>
        ))}
      </Table>
    </>
  );
};
