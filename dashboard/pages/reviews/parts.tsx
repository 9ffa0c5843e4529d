import type { FC } from 'hono/jsx';
import type { CheaperVerdict } from '../../../core/ladder/requests.ts';
import type { ReviewState } from '../../../workflows/ladder/review-state.ts';
import { runAt } from '../../address.ts';
import { Time, duration } from '../../parts/numbers.tsx';
import { Text } from '../../parts/text.tsx';

export const RunLink: FC<{ run: string }> = ({ run }) => (
  <a href={runAt(run)}>
    <Text value={run} max={100} />
  </a>
);

export const ReviewDeadline: FC<{ of: ReviewState }> = ({ of: { deadline } }) => {
  const left = (Date.parse(deadline) - Date.now()) / 1000;
  return (
    <>
      <Time at={Date.parse(deadline)} /> <small>{left > 0 ? `in ${duration(left)}` : 'over'}</small>
    </>
  );
};

export const Cheaper: FC<{ of: readonly CheaperVerdict[] }> = ({ of }) => {
  if (of.length === 0) return <>none is known</>;
  return (
    <ul class="plain">
      {of.map(({ verifier, score, uncertainty }) => (
        <li>
          <Text value={verifier} max={100} />{' '}
          {score === null
            ? 'abstained'
            : `${score.toFixed(3)}${uncertainty === undefined ? '' : ` ± ${uncertainty.toFixed(3)}`}`}
        </li>
      ))}
    </ul>
  );
};
