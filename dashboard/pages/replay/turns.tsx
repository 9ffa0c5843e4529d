import type { FC } from 'hono/jsx';
import type { ReplayedToken } from '../../../activities/replay/replay-episode.ts';
import type { Place } from '../../../runs/episodes/place.ts';
import type { ReplayJob } from '../../../runs/replay/jobs.ts';
import { chance, chancesOf } from '../../../runs/replay/words.ts';
import { Table, numeric } from '../../parts/table.tsx';
import { TextBlock, Text } from '../../parts/text.tsx';
import { jobAt } from './address.ts';

/** Tokens of a turn that a page lists. */
const MOST_TOKENS = 400;

/** One turn at a time, so that a page stays one that can be read. */
export const ReplayTurns: FC<{
  place: Place;
  job: ReplayJob;
  turns: readonly { start: number; end: number }[];
  tokens: readonly ReplayedToken[];
  shown: number;
  /** Where the positions are the stored episode's. */
  forkable: boolean;
}> = ({ place, job, turns, tokens, shown, forkable }) => {
  const turn = turns[shown - 1] ?? turns[0];
  if (!turn) return <p class="note">The policy has sampled nothing.</p>;
  const index = turns.indexOf(turn);
  const { start, end } = turn;
  const read = tokens.slice(end, turns[index + 1]?.start ?? tokens.length);
  const begun = index === 0 ? tokens.slice(0, start) : [];
  const listed = tokens.slice(start, Math.min(end, start + MOST_TOKENS));
  return (
    <>
      <h3 id="tokens">
        Turn {index + 1} of {turns.length}
      </h3>
      {turns.length > 1 && (
        <nav aria-label="Turns">
          {turns.map((_, i) =>
            i === index ? (
              <strong class="chip" aria-current="page">
                {i + 1}{' '}
              </strong>
            ) : (
              <>
                <a class="chip" href={`${jobAt(place, job.id)}&turn=${i + 1}#tokens`}>
                  {i + 1}
                </a>{' '}
              </>
            ),
          )}
        </nav>
      )}
      {begun.length > 0 && (
        <p>
          It was made to begin with <Text value={textOf(begun)} max={300} />
        </p>
      )}
      <Table
        label={`tokens of turn ${index + 1}`}
        caption={
          <>
            Tokens with their probabilities, and the likeliest others.
            {forkable && ' A link puts another token into the form of a fork.'}
          </>
        }
        columns={[numeric('position'), 'token', numeric('probability'), 'others']}
      >
        {listed.map((token, i) => (
          <tr>
            <th scope="row" class="number">
              {start + i}
            </th>
            <td class="mono">
              <Quoted text={token.text} />
            </td>
            <td class="number">
              <Chances of={token} />
            </td>
            <td>
              {(token.alternatives ?? [])
                .filter(({ id }) => id !== token.id)
                .map(({ id, text, logprob }) => (
                  <>
                    {forkable ? (
                      <a
                        class="mono chip"
                        href={`${jobAt(place, job.id)}&turn=${index + 1}&at=${start + i}&token=${id}#fork`}
                      >
                        <Quoted text={text} />
                      </a>
                    ) : (
                      <span class="mono">
                        <Quoted text={text} />
                      </span>
                    )}{' '}
                    <small>{chance(logprob)}</small>{' '}
                  </>
                ))}
            </td>
          </tr>
        ))}
      </Table>
      {end - start > MOST_TOKENS && (
        <p class="note">
          Of {end - start} tokens of the turn the first {MOST_TOKENS} are listed; in a terminal all are.
        </p>
      )}
      {read.length > 0 && (
        <details>
          <summary>what came back</summary>
          <TextBlock value={textOf(read)} label="what came back" />
        </details>
      )}
    </>
  );
};

const textOf = (tokens: readonly ReplayedToken[]): string => tokens.map(({ text }) => text).join('');

const Chances: FC<{ of: ReplayedToken }> = ({ of }) => {
  const { all, kept } = chancesOf(of);
  return (
    <>
      {all}
      {kept !== null && <small> {kept} behind the cut</small>}
    </>
  );
};

/** White space shows. */
const Quoted: FC<{ text: string }> = ({ text }) => <Text value={JSON.stringify(text)} max={60} />;
