import type { FC } from 'hono/jsx';
import type { Replayed } from '../../../activities/replay/replay-episode.ts';
import type { Place } from '../../../runs/episodes/place.ts';
import type { ReplayJob } from '../../../runs/replay/jobs.ts';
import { differenceLine, verdictOf } from '../../../runs/replay/words.ts';
import { Text } from '../../parts/text.tsx';
import type { ReplayView } from './address.ts';
import { jobAt } from './address.ts';
import { ReplayTurns } from './turns.tsx';

/** Differences that a page lists. */
const MOST_DIFFERENCES = 20;

export const Result: FC<{ place: Place; job: ReplayJob; replay: Replayed; looked: ReplayView }> = ({
  place,
  job,
  replay,
  looked,
}) => {
  const { differences, turns, tokens, unread } = replay;
  const first = differences[0]?.turn ?? 1;
  return (
    <section aria-labelledby="result">
      <h2 id="result">{replay.equal ? 'The same' : 'Not the same'}</h2>
      <p class={replay.equal ? 'good' : 'bad'}>{verdictOf(replay)}</p>
      {unread && (
        <p class="note">
          Its environment is not known here, so the recorded observations were used unchecked.
        </p>
      )}
      {differences.length > 0 && (
        <ul>
          {differences.slice(0, MOST_DIFFERENCES).map((difference) => (
            <li>
              <a href={`${jobAt(place, job.id)}&turn=${difference.turn}#tokens`}>
                <Text value={differenceLine(difference)} max={700} />
              </a>
            </li>
          ))}
          {differences.length > MOST_DIFFERENCES && <li>and {differences.length - MOST_DIFFERENCES} more</li>}
        </ul>
      )}
      <ReplayTurns
        place={place}
        job={job}
        turns={turns}
        tokens={tokens}
        shown={looked.turn ?? first}
        forkable
      />
    </section>
  );
};
