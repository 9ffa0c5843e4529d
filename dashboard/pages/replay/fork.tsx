import type { FC } from 'hono/jsx';
import type { Forked } from '../../../activities/replay/fork-episode.ts';
import type { ReplayAnswer } from '../../../activities/replay/replay.ts';
import type { Place } from '../../../runs/episodes/place.ts';
import type { ReplayJob } from '../../../runs/replay/jobs.ts';
import { endOfFork } from '../../../runs/replay/words.ts';
import { Components, OutcomeLine } from '../../parts/outcome.tsx';
import { TextBlock, Text } from '../../parts/text.tsx';
import type { ReplayView } from './address.ts';
import { ReplayTurns } from './turns.tsx';

export const ForkForm: FC<{
  place: Place;
  job: ReplayJob;
  fork: Forked;
  answer: ReplayAnswer;
  looked: ReplayView;
}> = ({ place, job, fork, answer: { stored }, looked }) => {
  const { at, turns, tokens } = fork;
  const first = Math.max(1, turns.findIndex(({ end }) => end > at) + 1);
  return (
    <section aria-labelledby="result">
      <h2 id="result">Forked at {at}</h2>
      <p>
        <strong>
          <Text value={endOfFork(fork)} max={1000} />
        </strong>
      </p>
      <p>
        The episode as it was: <OutcomeLine outcome={stored.outcome} />
      </p>
      <Components outcome={fork.outcome ?? undefined} />
      <p class="note">Nothing of it is stored in the run.</p>
      <ol class="turns" start={first}>
        {turns.slice(first - 1).map(({ text, observation }, i) => (
          <li>
            <TextBlock value={text} label={`turn ${first + i}`} />
            {observation && (
              <details open>
                <summary>what came back</summary>
                <TextBlock value={observation.text} label={`observation of turn ${first + i}`} />
              </details>
            )}
          </li>
        ))}
      </ol>
      <ReplayTurns
        place={place}
        job={job}
        turns={turns}
        tokens={tokens}
        shown={looked.turn ?? first}
        forkable={false}
      />
    </section>
  );
};
