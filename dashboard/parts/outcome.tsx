import type { FC } from 'hono/jsx';
import { isRewarded } from '../../core/episode/outcome.ts';
import type { Outcome } from '../../core/episode/outcome.ts';
import { shortNumber } from '../../svg/charts.ts';
import { NumberCell } from './numbers.tsx';
import { Text } from './text.tsx';
import { Table, numeric } from './table.tsx';

/** What became of an episode, in a line. */
export const OutcomeLine: FC<{ outcome: Outcome | undefined }> = ({ outcome }) => {
  if (outcome === undefined) return <>not judged</>;
  if (outcome.kind === 'scored') return <>scored, reward {shortNumber(outcome.reward)}</>;
  if (outcome.kind === 'truncated') {
    return (
      <>
        cut off: no more {outcome.limit}; reward {shortNumber(outcome.reward)}
      </>
    );
  }
  if (outcome.kind === 'pending') return <>pending: the {outcome.tier} tier has not judged yet</>;
  const reason = <Text value={outcome.reason} max={500} />;
  if (outcome.kind === 'abstained') return <>abstained: {reason}</>;
  return (
    <span class="bad">
      failed at {outcome.boundary}: {reason}
    </span>
  );
};

/** Components of the reward. */
export const Components: FC<{ outcome: Outcome | undefined; evidence?: boolean }> = ({
  outcome,
  evidence = true,
}) => {
  if (outcome === undefined || !isRewarded(outcome) || outcome.components.length === 0) return null;
  return (
    <Table
      caption="Components of the reward"
      columns={['verifier or rule', numeric('score'), numeric('adds'), ...(evidence ? ['evidence'] : [])]}
    >
      {outcome.components.map((one) => (
        <tr>
          <th scope="row">
            <Text value={one.verifier} max={100} />
            {evidence && (
              <small>
                {' '}
                version <Text value={one.version} max={60} />
              </small>
            )}
          </th>
          <td class="number">
            {one.score === null ? 'abstained' : shortNumber(one.score)}
            {one.worth !== undefined && ` (worth ${shortNumber(one.worth)})`}
          </td>
          <NumberCell value={one.contribution} />
          {evidence && (
            <td>
              {one.evidence === undefined ? '' : <Text value={one.evidence} max={1000} />}
              {one.steps && ` by turn: ${one.steps.map(shortNumber).join(', ')}`}
              {one.members &&
                ` members: ${one.members.map(({ verifier, score }) => `${verifier} ${score ?? 'abstained'}`).join(', ')}`}
            </td>
          )}
        </tr>
      ))}
    </Table>
  );
};
