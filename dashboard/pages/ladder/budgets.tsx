import type { FC } from 'hono/jsx';
import type { Account, Budget } from '../../../core/ladder/budget.ts';
import type { LadderView } from '../../../runs/ladder/ladder.ts';
import { amountText, dollars, duration } from '../../parts/numbers.tsx';
import { Table, numeric } from '../../parts/table.tsx';
import { Text } from '../../parts/text.tsx';

export const Budgets: FC<{ view: LadderView }> = ({
  view: { rungs: tiers, stage, budgetsFrom, waiting },
}) => {
  const limited = tiers.flatMap(({ verifier, budget }) => (budget === null ? [] : [{ verifier, ...budget }]));
  return (
    <>
      <h2>Budgets</h2>
      <p class="note">
        {stage === null ? (
          'No candidate was escalated yet.'
        ) : (
          <>
            Of the stage <Text value={stage} max={100} />.
          </>
        )}{' '}
        {budgetsFrom === 'ledger'
          ? "The ladder's workflow does not answer, so spending is that of the ledger. What is promised to computations under way is not known."
          : `${amountText(waiting ?? 0, 'computation')} ${waiting === 1 ? 'has' : 'have'} been asked for and ${waiting === 1 ? 'has' : 'have'} not answered.`}
        {tiers.some(({ totals }) => totals.openSeconds > 0) &&
          ' For people, time is how long their reviews were open.'}
      </p>
      <Table
        label="budgets"
        columns={['tier', 'of', numeric('limit'), numeric('spent'), numeric('promised'), numeric('left')]}
      >
        {limited.flatMap(({ verifier, budget, account }) =>
          linesOf(budget, account, budgetsFrom === 'ledger').map(([what, ...cells], i) => (
            <tr>
              <th scope="row">
                {i === 0 ? <Text value={verifier} max={100} /> : <span class="muted">″</span>}
              </th>
              <td>{what}</td>
              {cells.map((cell) => (
                <td class="number">{cell}</td>
              ))}
            </tr>
          )),
        )}
      </Table>
    </>
  );
};

const MEASURES: readonly (readonly ['count' | 'seconds' | 'usd', string, (value: number) => string])[] = [
  ['count', 'verdicts', String],
  ['seconds', 'time', duration],
  ['usd', 'cost', (usd) => dollars(usd)],
];

/** A line for each limit; one with what was spent where there is none. */
function linesOf(budget: Budget, account: Account, unknownPromises: boolean): string[][] {
  const lines = MEASURES.map(([field, what, show]) => {
    const limit = budget[field];
    const [spent, promised] = [account[field], account.reserved[field]];
    return [
      what,
      limit === undefined ? 'none' : show(limit),
      show(spent),
      unknownPromises ? 'not known' : show(promised),
      limit === undefined ? '–' : show(Math.max(0, limit - spent - promised)),
    ];
  });
  const perStep =
    budget.perStep === undefined ? [] : [['verdicts of one step', String(budget.perStep), '–', '–', '–']];
  return [...lines, ...perStep];
}
