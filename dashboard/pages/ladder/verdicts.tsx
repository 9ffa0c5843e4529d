import type { FC } from 'hono/jsx';
import type { LadderView } from '../../../runs/ladder/ladder.ts';
import { amountText, priceText } from '../../parts/numbers.tsx';
import { Text } from '../../parts/text.tsx';
import { Table } from '../../parts/table.tsx';
import { SubjectLink } from './subject-link.tsx';

export const Newest: FC<{ view: LadderView }> = ({ view: { run, ledger } }) => (
  <>
    <h2>Newest verdicts</h2>
    {ledger.newest.length === 0 ? (
      <p>There is no verdict yet.</p>
    ) : (
      <Verdicts
        run={run}
        caption={`The newest: ${amountText(ledger.newest.length, 'verdict')}`}
        of={ledger.newest}
      />
    )}
  </>
);

export const Verdicts: FC<{ run: string; caption: string; of: LadderView['ledger']['newest'] }> = ({
  run,
  caption,
  of,
}) => (
  <Table caption={caption} columns={['subject', 'by', 'asked in', 'verdict', 'price']}>
    {of.toReversed().map(({ verifier, digest, stage, result, type, spent, late, afterRun, by }) => (
      <tr data-item>
        <td>
          <SubjectLink run={run} verifier={verifier} digest={digest} />
        </td>
        <td>
          <Text value={verifier} max={100} />
        </td>
        <td>
          <Text value={stage} max={100} />
        </td>
        <td>
          {result}
          {type !== undefined && (
            <>
              {' ('}
              <Text value={type} max={100} />)
            </>
          )}
          {late && (afterRun ? ', after the run' : ', late')}
        </td>
        <td>{spent === null ? 'shared: nothing' : priceText(spent, by === 'people')}</td>
      </tr>
    ))}
  </Table>
);
