import type { Context as Request } from 'hono';
import type { FC } from 'hono/jsx';
import type { Forked } from '../../activities/replay/fork-episode.ts';
import type { Replayed, ReplayedToken } from '../../activities/replay/replay-episode.ts';
import type { ReplayAnswer } from '../../activities/replay/replay.ts';
import { GradusError } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import { parsePlace, placeOf } from '../../runs/episodes/place.ts';
import type { Place } from '../../runs/episodes/place.ts';
import type { ReplayJob } from '../../runs/replay/jobs.ts';
import { chance, chancesOf, differenceLine, endOf, verdictOf } from '../../runs/replay/words.ts';
import { episodeAt } from '../address.ts';
import type { App, Context } from '../context.ts';
import { Layout, Live } from '../layout.tsx';
import { Action } from '../parts/action.tsx';
import { duration, Time } from '../parts/numbers.tsx';
import { Components, OutcomeLine } from '../parts/outcome.tsx';
import { crumbsOfEpisode } from '../parts/crumbs.ts';
import { Scroll } from '../parts/scroll.tsx';
import { Block, Text } from '../parts/text.tsx';

const PLACE = '/runs/:run/episodes/:stage/:step/:group/:episode/replay';

/** Differences, and tokens of a turn, that a page lists. */
const MOST_DIFFERENCES = 20;
const MOST_TOKENS = 400;
const MOST_ALTERNATIVES = 20;

/** What of a result is looked at, and what the form of a fork begins with: all of it is in the address. */
interface Looked {
  job: number | null;
  /** From 1. */
  turn: number | null;
  at: string;
  token: string;
}

/** An episode sampled again token by token, with what else could have been drawn; and forks of it. */
export function replayPage(app: App, context: Context): void {
  const { replays } = context;

  app.get(PLACE, (c) => {
    const number = (name: string): number | null => {
      const written = c.req.query(name) ?? '';
      return /^\d{1,9}$/.test(written) ? Number(written) : null;
    };
    const looked: Looked = {
      job: number('job'),
      turn: number('turn'),
      at: String(number('at') ?? ''),
      token: String(number('token') ?? ''),
    };
    return c.html(<Page place={placeIn(c)} looked={looked} context={context} />);
  });

  app.post(PLACE, async (c) => {
    const place = placeIn(c);
    const alternatives = fieldOf(await c.req.parseBody(), 'alternatives') ?? 0;
    if (alternatives > MOST_ALTERNATIVES)
      throw wrong(`alternatives: at most ${MOST_ALTERNATIVES}, and ${alternatives} are asked for`);
    const job = replays.start({ place, alternatives, fork: null });
    return c.redirect(jobAt(place, job.id), 303);
  });

  app.post(`${PLACE}/fork`, async (c) => {
    const place = placeIn(c);
    const form = await c.req.parseBody();
    const fork = {
      at: fieldOf(form, 'at') ?? -1,
      token: fieldOf(form, 'with'),
      seed: fieldOf(form, 'seed'),
    };
    if (fork.at < 0) throw wrong('say at which position the episode forks');
    if (fork.token === null && fork.seed === null)
      throw wrong('a fork needs another token, by its id, or the seed of other draws');
    const job = replays.start({ place, alternatives: 5, fork });
    return c.redirect(jobAt(place, job.id), 303);
  });

  app.post(`${PLACE}/stop`, async (c) => {
    const place = placeIn(c);
    const job = fieldOf(await c.req.parseBody(), 'job');
    if (job !== null) replays.stop(job);
    return c.redirect(replayAt(place), 303);
  });
}

const replayAt = (place: Place): string => `${episodeAt(place)}/replay`;
const jobAt = (place: Place, job: number): string => `${replayAt(place)}?job=${job}`;

function placeIn(c: Request): Place {
  const { run, stage, step, group, episode } = c.req.param() as Record<string, string>;
  return parsePlace([run, stage, step, group, episode].join('/'));
}

const wrong = (why: string): GradusError => new GradusError('spec', 'replay', why);

/** A whole number of a form; null where it is left empty. */
function fieldOf(form: Record<string, unknown>, name: string): number | null {
  const written = form[name] ?? '';
  if (written === '') return null;
  if (typeof written === 'string' && /^\d{1,9}$/.test(written)) return Number(written);
  throw wrong(`${name} is a whole number of up to nine digits`);
}

const Page: FC<{ place: Place; looked: Looked; context: Context }> = ({ place, looked, context }) => {
  const { replays } = context;
  const jobs = replays.of(place);
  const job = jobs.find(({ id }) => id === looked.job) ?? jobs[0];
  const busy = replays.current;
  return (
    <Layout
      title={`Replay of ${placeOf(place)}`}
      crumbs={crumbsOfEpisode(place)}
      live={job?.state.kind === 'running'}
    >
      <p>
        Every token that the policy sampled is sampled again, by the checkpoint that sampled it and with the
        same draws, behind what is recorded before it. Tools are not called. It takes a model into memory, in
        a process of its own.
      </p>
      <Live id="replay">
        {job && <State place={place} job={job} looked={looked} context={context} />}
        {busy && busy !== job && (
          <p role="status">
            Another replay runs, and there is one at a time:{' '}
            <a href={replayAt(busy.request.place)}>{placeOf(busy.request.place)}</a>
          </p>
        )}
      </Live>
      <Live id="begin">
        {context.actions && !busy && <Begin place={place} looked={looked} context={context} />}
      </Live>
      {jobs.length > 1 && (
        <nav aria-label="Replays of this episode">
          <h2>Also of this episode</h2>
          <ul>
            {jobs.map((one) => (
              <li>
                <a class="chip" href={jobAt(place, one.id)} aria-current={one === job ? 'page' : undefined}>
                  {nameOf(one)}
                </a>
              </li>
            ))}
          </ul>
        </nav>
      )}
      <p class="note">
        {!context.actions && 'This dashboard only shows; started with --actions it can replay. '}
        In a terminal: <code class="command">{commandLine(`replay ${placeOf(place)}`)}</code>
      </p>
    </Layout>
  );
};

function nameOf({ id, request: { fork } }: ReplayJob): string {
  if (fork === null) return `${id}: a replay`;
  const what = fork.token === null ? 'drawn anew' : `token ${fork.token}`;
  return `${id}: a fork at ${fork.at}, ${what}${fork.seed === null ? '' : `, seed ${fork.seed}`}`;
}

const Begin: FC<{ place: Place; looked: Looked; context: Context }> = ({ place, looked, context }) => (
  <>
    <h2>Sample again</h2>
    <Action to={replayAt(place)} token={context.formToken} label="Replay">
      <label>
        alternatives at each token{' '}
        <input type="number" name="alternatives" value="5" min="0" max={MOST_ALTERNATIVES} required />
      </label>
    </Action>
    <h2 id="fork">Go another way</h2>
    <p>
      From a token that the policy sampled: with another one in its place and otherwise the same draws, or
      with other draws. Tools are really called, the run's fast verifiers judge it, and nothing of it is kept
      in the run.
    </p>
    <Action to={`${replayAt(place)}/fork`} token={context.formToken} label="Fork">
      <label>
        position <input type="number" name="at" value={looked.at} min="0" required />
      </label>
      <label>
        id of the token <input type="number" name="with" value={looked.token} min="0" />
      </label>
      <label>
        seed of other draws <input type="number" name="seed" min="0" />
      </label>
    </Action>
  </>
);

const State: FC<{ place: Place; job: ReplayJob; looked: Looked; context: Context }> = ({
  place,
  job,
  looked,
  context,
}) => {
  const { state } = job;
  if (state.kind === 'running') {
    const { since, progress } = state;
    return (
      <>
        <p role="status">
          <span class="status running">running</span> for {duration((Date.now() - since) / 1000)}
          {progress && `: ${progress.tokens}${progress.total === null ? '' : ` of ${progress.total}`} tokens`}
          . <a href={jobAt(place, job.id)}>Look again</a>
        </p>
        {context.actions && (
          <Action to={`${replayAt(place)}/stop`} token={context.formToken} label="Stop it">
            <input type="hidden" name="job" value={job.id} />
          </Action>
        )}
      </>
    );
  }
  if (state.kind === 'failed') {
    return (
      <p role="status">
        <span class="bad">There is no result</span>: <Text value={state.reason} max={2000} />
      </p>
    );
  }
  const { answer, at } = state;
  return (
    <>
      <p class="note">
        {nameOf(job)}, done at <Time at={at} /> UTC with the weights{' '}
        <code>{answer.checkpoint.weights.slice(0, 12)}</code> of step {answer.checkpoint.step},{' '}
        {answer.decoder}
      </p>
      {answer.replay && <Result place={place} job={job} replay={answer.replay} looked={looked} />}
      {answer.fork && <Fork place={place} job={job} fork={answer.fork} answer={answer} looked={looked} />}
    </>
  );
};

const Result: FC<{ place: Place; job: ReplayJob; replay: Replayed; looked: Looked }> = ({
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
      {unread && <p class="note">Its environment is not known here: what it read was taken as it is.</p>}
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
      <Turns place={place} job={job} turns={turns} tokens={tokens} shown={looked.turn ?? first} forkable />
    </section>
  );
};

/** One turn at a time, so that a page stays one that can be read. */
const Turns: FC<{
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
      <Scroll label={`tokens of turn ${index + 1}`}>
        <table>
          <caption>
            Tokens with their probabilities, and the likeliest others.
            {forkable && ' A link puts another token into the form of a fork.'}
          </caption>
          <thead>
            <tr>
              <th scope="col" class="number">
                position
              </th>
              <th scope="col">token</th>
              <th scope="col" class="number">
                probability
              </th>
              <th scope="col">others</th>
            </tr>
          </thead>
          <tbody>
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
          </tbody>
        </table>
      </Scroll>
      {end - start > MOST_TOKENS && (
        <p class="note">
          Of {end - start} tokens of the turn the first {MOST_TOKENS} are listed; in a terminal all are.
        </p>
      )}
      {read.length > 0 && (
        <details>
          <summary>what came back</summary>
          <Block value={textOf(read)} label="what came back" />
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

const Fork: FC<{ place: Place; job: ReplayJob; fork: Forked; answer: ReplayAnswer; looked: Looked }> = ({
  place,
  job,
  fork,
  answer: { stored },
  looked,
}) => {
  const { at, turns, tokens } = fork;
  const first = Math.max(1, turns.findIndex(({ end }) => end > at) + 1);
  return (
    <section aria-labelledby="result">
      <h2 id="result">Forked at {at}</h2>
      <p>
        <strong>
          <Text value={endOf(fork)} max={1000} />
        </strong>
      </p>
      <p>
        The episode as it was: <OutcomeLine outcome={stored.outcome} />
      </p>
      <Components outcome={fork.outcome ?? undefined} />
      <p class="note">Nothing of it is kept in the run.</p>
      <ol class="turns" start={first}>
        {turns.slice(first - 1).map(({ text, observation }, i) => (
          <li>
            <Block value={text} label={`turn ${first + i}`} />
            {observation && (
              <details open>
                <summary>what came back</summary>
                <Block value={observation.text} label={`observation of turn ${first + i}`} />
              </details>
            )}
          </li>
        ))}
      </ol>
      <Turns
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
