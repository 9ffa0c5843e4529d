import type { FC } from 'hono/jsx';
import { MOST_HITS } from '../../../runs/find/find-jobs.ts';
import type { TextSearch } from '../../../runs/find/find-jobs.ts';
import { episodeAt } from '../../address.ts';
import type { Context } from '../../context.ts';
import { ActionButton } from '../../parts/action.tsx';
import { Text } from '../../parts/text.tsx';
import type { FindRequest } from './asked.ts';
import { linkTo } from './asked.ts';

export const Hits: FC<{ search: TextSearch; asked: FindRequest; context: Context }> = ({
  search,
  asked,
  context,
}) => {
  const { at, state, hits, full, problem } = search;
  return (
    <>
      <h2>
        {hits.length}
        {full ? ' or more' : ''} episodes have “<Text value={asked.query.text ?? ''} max={200} />”
      </h2>
      <p role="status">
        {state === 'goes on' && `${at.done} of ${at.total} groups are read. `}
        {state === 'done' &&
          (full ? `The first ${MOST_HITS} are shown. ` : `All ${at.total} groups are read. `)}
        {state === 'ended' &&
          `Nobody had the page open, so the search ended after ${at.done} of ${at.total} groups. `}
        {state === 'failed' && (
          <>
            It ended after {at.done} of {at.total} groups: <Text value={problem ?? ''} max={500} />{' '}
          </>
        )}
        {state !== 'done' && <a href={linkTo('/find', asked)}>Look again</a>}
      </p>
      {state === 'goes on' && context.actions && (
        <ActionButton to="/find/end-search" token={context.formToken} label="End the search">
          <input type="hidden" name="asked" value={linkTo('', asked).slice(1)} />
        </ActionButton>
      )}
      {hits.length > 0 && (
        <ul>
          {hits.map(({ place, where, turn, before, text, after }) => (
            <li data-item>
              <a href={episodeAt(place)}>
                <Text value={place.stage} max={80} /> {place.step}, group {place.group}, episode{' '}
                {place.episode}
              </a>
              , {turn === null ? where : `${where} ${turn}`}:{' '}
              <Excerpt before={before} text={text} after={after} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
};

const Excerpt: FC<{ before: string; text: string; after: string }> = ({ before, text, after }) => (
  <>
    <Text value={before} />
    <mark>
      <Text value={text} />
    </mark>
    <Text value={after} />
  </>
);
