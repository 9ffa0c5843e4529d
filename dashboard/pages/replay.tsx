import type { Context as Request } from 'hono';
import type { FC } from 'hono/jsx';
import { GradusError } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import { parsePlace, placeOf } from '../../runs/episodes/place.ts';
import type { Place } from '../../runs/episodes/place.ts';
import type { App, Context } from '../context.ts';
import { Layout, Live } from '../layout.tsx';
import { crumbsOfEpisode } from '../parts/crumbs.ts';
import { BeginReplay, MOST_ALTERNATIVES } from './replay/begin.tsx';
import type { ReplayView } from './replay/address.ts';
import { jobAt, replayAt } from './replay/address.ts';
import { ReplayPanel, replayName } from './replay/state.tsx';

const PLACE = '/runs/:run/episodes/:stage/:step/:group/:episode/replay';

/** An episode sampled again token by token, with what else could have been drawn; and forks of it. */
export function replayPage(app: App, context: Context): void {
  const { replays } = context;

  app.get(PLACE, (c) => {
    const number = (name: string): number | null => {
      const written = c.req.query(name) ?? '';
      return /^\d{1,9}$/.test(written) ? Number(written) : null;
    };
    const looked: ReplayView = {
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
    if (fork.at < 0) throw wrong('give the position at which the episode forks');
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

const Page: FC<{ place: Place; looked: ReplayView; context: Context }> = ({ place, looked, context }) => {
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
        {job && <ReplayPanel place={place} job={job} looked={looked} context={context} />}
        {busy && busy !== job && (
          <p role="status">
            Another replay runs, and there is one at a time:{' '}
            <a href={replayAt(busy.request.place)}>{placeOf(busy.request.place)}</a>
          </p>
        )}
      </Live>
      <Live id="begin">
        {context.actions && !busy && <BeginReplay place={place} looked={looked} context={context} />}
      </Live>
      {jobs.length > 1 && (
        <nav aria-label="Replays of this episode">
          <h2>Also of this episode</h2>
          <ul>
            {jobs.map((one) => (
              <li>
                <a class="chip" href={jobAt(place, one.id)} aria-current={one === job ? 'page' : undefined}>
                  {replayName(one)}
                </a>
              </li>
            ))}
          </ul>
        </nav>
      )}
      <p class="note">
        {!context.actions && 'This dashboard is read-only; started with --actions it can replay. '}
        In a terminal: <code class="command">{commandLine(`replay ${placeOf(place)}`)}</code>
      </p>
    </Layout>
  );
};
