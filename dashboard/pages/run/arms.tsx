import type { FC } from 'hono/jsx';
import { learnability } from '../../../core/training/task-draw.ts';
import type { StoredStep } from '../../../store/training/step-facts.ts';
import { percent } from '../../../core/percent.ts';
import { Text } from '../../parts/text.tsx';
import { Table, numeric } from '../../parts/table.tsx';

export const Arms: FC<{ step: StoredStep }> = ({ step }) => (
  <>
    <h2>Arms</h2>
    <Table
      caption={
        <>How stage {step.stage} estimates each environment and level, which decides how it draws tasks</>
      }
      columns={['arm', numeric('success p'), numeric('trials, decayed'), numeric('p(1 − p)')]}
    >
      {Object.entries(step.estimates).map(([name, estimate]) => {
        const p = (estimate.successes + 1) / (estimate.trials + 2);
        return (
          <tr>
            <th scope="row">
              <Text value={name} max={100} />
            </th>
            <td class="number">{percent(p)}</td>
            <td class="number">{estimate.trials.toFixed(1)}</td>
            <td class="number" title={`weight ${learnability(estimate).toFixed(3)}`}>
              {(p * (1 - p)).toFixed(3)}
            </td>
          </tr>
        );
      })}
    </Table>
  </>
);
