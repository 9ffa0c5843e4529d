import type { FC } from 'hono/jsx';
import type { OpenReview } from '../../../runs/ladder/reviews.ts';
import { printable } from '../../../core/printable.ts';
import { reviewAt } from '../../address.ts';
import { Time, amountText } from '../../parts/numbers.tsx';
import { Table } from '../../parts/table.tsx';
import { Text } from '../../parts/text.tsx';
import { Cheaper, ReviewDeadline, RunLink } from './parts.tsx';

/** By review, its drawing. */
export type ThumbnailsBySubject = Map<string, { src: string; alt: string }>;

export const Inbox: FC<{ reviews: readonly OpenReview[]; more: boolean; drawn: ThumbnailsBySubject }> = ({
  reviews,
  more,
  drawn,
}) => {
  if (reviews.length === 0) return <p>No review is open.</p>;
  return (
    <Table
      label="open reviews"
      caption={
        <>
          {amountText(reviews.length, 'open review')}
          {more && ', and more'}; those with the nearest deadline first
        </>
      }
      columns={['review', 'run', 'what', 'verdicts of lower tiers', 'opinions', 'deadline, UTC']}
    >
      {reviews.map(({ id, run, startedAt, state, runOver }) => (
        <tr data-item>
          <td>
            <a href={reviewAt(id)}>
              <Text value={nameOf(id)} max={120} />
            </a>
          </td>
          <td>
            {run === null ? 'not known' : <RunLink run={run} />}
            {runOver && <div class="warn">is over: a verdict is stored for other runs</div>}
          </td>
          {state === null ? (
            <td colspan={4}>
              asked <Time at={startedAt} />; it does not answer now: is an orchestrator there?
            </td>
          ) : (
            <>
              <td>
                {drawn.has(id) && (
                  <img class="drawing small" src={drawn.get(id)!.src} alt={printable(drawn.get(id)!.alt)} />
                )}
                <code>
                  <Text value={JSON.stringify(state.ask.request.subject)} max={160} />
                </code>
              </td>
              <td>
                <Cheaper of={state.ask.cheaper ?? []} />
              </td>
              <td>
                {state.opinions.length} of {state.reviewers}
              </td>
              <td>
                <ReviewDeadline of={state} />
              </td>
            </>
          )}
        </tr>
      ))}
    </Table>
  );
};

/** `verdict/expert/1/0a1b…` without what is the same of all, and as much of the digest as tells them apart. */
const nameOf = (id: string): string => {
  const [, verifier = id, version = '', digest = ''] = id.split('/');
  return [verifier, version, digest.slice(0, 12)].filter((part) => part !== '').join(' ');
};
