import type { FC } from 'hono/jsx';
import { GradusError } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import { armName } from '../../core/names.ts';
import { ALONG, askedOfAll, commonTasks, compareRuns, MOST_RUNS } from '../../runs/comparison/compare.ts';
import type { Along, Asked, CommonEpisode, CommonTasks, Comparison } from '../../runs/comparison/compare.ts';
import { divergenceText } from '../../runs/comparison/divergence-words.ts';
import { divergenceOf } from '../../runs/comparison/divergence.ts';
import type { Divergence } from '../../runs/comparison/divergence.ts';
import { groupNumber } from '../../runs/reweigh/reweigh-words.ts';
import { shortNumber } from '../../svg/charts.ts';
import { episodeAt, groupAt, runAt, stepAt } from '../address.ts';
import type { App, Context } from '../context.ts';
import { Layout } from '../layout.tsx';
import { Curves } from '../parts/chart.tsx';
import { duration, Success } from '../parts/numbers.tsx';
import { Scroll } from '../parts/scroll.tsx';
import { Text } from '../parts/text.tsx';
import { Unreadable } from '../parts/unreadable.tsx';

const MOST_ROWS = 200;
/** Places to choose from: of a run of thousands of steps the newest. */
const MOST_PLACES = 300;

/** Figures that are shown at once, by what they answer; the rest are there when all are asked for. */
const CURATED: [name: string, heading: string][] = [
  ['success/held-out', 'Held-out success'],
  ['success/train', 'Success in training'],
  ['reward/mean', 'Reward'],
  ['reward/equal-groups', 'Groups that teach nothing'],
  ['policy/entropy', 'Entropy, nats a token'],
  ['learner/kl', 'KL, nats'],
  ['learner/gradient-norm', 'Gradient norm'],
  ['episodes/tokens', 'Length, tokens of an episode'],
  ['episodes/turns', 'Turns of an episode'],
  ['episodes/truncated', 'Truncated'],
  ['outcomes/failed', 'Failed'],
];
const UNITS: Record<Along, string> = { step: 'step', tokens: 'token', time: 'second' };
const NAMES: Record<Along, string> = {
  step: 'step of the run',
  tokens: 'tokens sampled to learn from',
  time: 'seconds of the steps',
};

interface Asking {
  runs: string[];
  by: Along;
  figures: 'curated' | 'all';
  at: Asked | null;
  tasks: 'all' | 'differing';
  /** Where the runs part is looked for where facts differ, or in every stored episode. */
  parting: 'facts' | 'episodes';
}

/** `/compare?runs=A,B`: what two to four runs differ in, what came of it, and where they part. */
export function comparePage(app: App, { sources }: Context): void {
  app.get('/compare', async (c) => {
    const asking = askingOf(c.req.queries());
    const { store } = sources;
    const { folders } = await store.listFolder('runs/');
    const known = folders.map((folder) => folder.slice('runs/'.length, -1));
    if (asking.runs.length < 2) {
      return c.html(
        <Layout title="Compare">
          <p>Choose two to four runs.</p>
          <Choice asking={asking} known={known} places={[]} />
        </Layout>,
      );
    }
    const compared = await compareRuns(store, asking.runs, asking.by);
    const places = await askedOfAll(store, asking.runs);
    const at = asking.at ?? places[0] ?? null;
    const tasks = at === null ? null : await commonTasks(store, asking.runs, at);
    const [first, ...others] = asking.runs as [string, ...string[]];
    const divergences: Divergence[] = [];
    for (const other of others)
      divergences.push(
        await divergenceOf(store, [first, other], { episodes: asking.parting === 'episodes' }),
      );
    return c.html(
      <Layout title={`Compare ${asking.runs.join(', ')}`}>
        <Choice asking={{ ...asking, at }} known={known} places={places} />
        <Unreadable of={[...compared.unreadable, ...(tasks?.unreadable ?? [])]} />
        <Overview compared={compared} />
        <h2>Where they part</h2>
        {divergences.map((divergence) => (
          <Part divergence={divergence} />
        ))}
        <Spec compared={compared} />
        <Charts compared={compared} figures={asking.figures} />
        {tasks && <Tasks runs={asking.runs} tasks={tasks} only={asking.tasks} />}
      </Layout>,
    );
  });
}

/** Throws GradusError('spec', …) for what a page has no link to. */
function askingOf(query: Record<string, string[]>): Asking {
  const one = (name: string): string => query[name]?.[0] ?? '';
  const runs = [...(query['runs'] ?? []).flatMap((some) => some.split(',')), ...(query['run'] ?? [])]
    .map((run) => run.trim())
    .filter((run) => run !== '');
  const by = ALONG.find((along) => along === (one('by') || 'step'));
  if (!by) throw invalid(`by is one of ${ALONG.join(', ')}`);
  const [, stage, step] = /^([^/]+)\/(\d{1,9})$/.exec(one('at')) ?? [];
  if (one('at') !== '' && stage === undefined) throw invalid('at is STAGE/STEP');
  return {
    runs,
    by,
    figures: one('figures') === 'all' ? 'all' : 'curated',
    at: stage === undefined ? null : { stage, step: Number(step) },
    tasks: one('tasks') === 'all' ? 'all' : 'differing',
    parting: one('parting') === 'episodes' ? 'episodes' : 'facts',
  };
}

const invalid = (message: string): GradusError => new GradusError('spec', 'comparison', message);

const placeText = ({ stage, step }: Asked): string => `${stage}/${step}`;

const Choice: FC<{ asking: Asking; known: readonly string[]; places: readonly Asked[] }> = ({
  asking: { runs, by, figures, at, tasks, parting },
  known,
  places,
}) => (
  <form method="get" action="/compare" class="filters">
    {Array.from({ length: MOST_RUNS }, (_, i) => (
      <label>
        run {i + 1}
        {i > 1 && ', if any'}
        <input name="run" value={known.includes(runs[i] ?? '') ? runs[i] : ''} list="runs" size={18} />
      </label>
    ))}
    <datalist id="runs">
      {known.map((run) => (
        <option value={run} />
      ))}
    </datalist>
    <label>
      charts by
      <select name="by">
        {ALONG.map((along) => (
          <option value={along} selected={along === by}>
            {NAMES[along]}
          </option>
        ))}
      </select>
    </label>
    <label>
      figures
      <select name="figures">
        <option value="curated" selected={figures === 'curated'}>
          the most telling
        </option>
        <option value="all" selected={figures === 'all'}>
          all
        </option>
      </select>
    </label>
    <label>
      they part
      <select name="parting">
        <option value="facts" selected={parting === 'facts'}>
          by the facts of steps
        </option>
        <option value="episodes" selected={parting === 'episodes'}>
          by every stored episode (reads all of them)
        </option>
      </select>
    </label>
    {places.length > 0 && (
      <>
        <label>
          tasks of
          <select name="at">
            {places.slice(0, MOST_PLACES).map((place) => (
              <option value={placeText(place)} selected={at !== null && placeText(at) === placeText(place)}>
                {placeText(place)}
              </option>
            ))}
          </select>
        </label>
        <label>
          of these
          <select name="tasks">
            <option value="differing" selected={tasks === 'differing'}>
              those solved by some alone
            </option>
            <option value="all" selected={tasks === 'all'}>
              all
            </option>
          </select>
        </label>
      </>
    )}
    <button type="submit">Compare</button>
  </form>
);

const Heads: FC<{ first: string; runs: readonly string[] }> = ({ first, runs }) => (
  <thead>
    <tr>
      <th scope="col">{first}</th>
      {runs.map((run) => (
        <th scope="col">
          <a href={runAt(run)}>
            <Text value={run} max={100} />
          </a>
        </th>
      ))}
    </tr>
  </thead>
);

const Overview: FC<{ compared: Comparison }> = ({ compared: { runs, heldOut } }) => (
  <>
    <h2>What came of them</h2>
    <Scroll label="runs">
      <table>
        <Heads first="" runs={runs.map(({ run }) => run)} />
        <tbody>
          <tr>
            <th scope="row">steps</th>
            {runs.map(({ steps }) => (
              <td>{steps}</td>
            ))}
          </tr>
          <tr>
            <th scope="row">{NAMES.tokens}</th>
            {runs.map(({ tokens }) => (
              <td>{shortNumber(tokens)}</td>
            ))}
          </tr>
          <tr>
            <th scope="row">{NAMES.time}</th>
            {runs.map(({ seconds }) => (
              <td>{duration(seconds)}</td>
            ))}
          </tr>
          {heldOut.map(({ arm, of }) => (
            <tr>
              <th scope="row">
                held-out, <Text value={armName(arm)} max={100} />
              </th>
              {of.map((one) => (
                <td>
                  {one === null ? (
                    '–'
                  ) : (
                    <>
                      <Success of={one} /> <small>after step {one.step}</small>
                    </>
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  </>
);

const Part: FC<{ divergence: Divergence }> = ({ divergence }) => {
  const { runs, parting } = divergence;
  const at = parting?.at ?? null;
  const group = parting?.group ? groupNumber({ group: parting.group }) : null;
  const stage = parting?.evaluation ?? at?.stage ?? '';
  return (
    <section class="card" aria-label={runs.join(' and ')}>
      {divergenceText(divergence).map((line) => (
        <p>
          <Text value={line} max={1000} />
        </p>
      ))}
      {at && (
        <p>
          {runs.map((run) => {
            const step = { run, stage, step: at.stageStep };
            return (
              <>
                {run}: <a href={stepAt({ ...step, stage: at.stage })}>the step</a>
                {group !== null && (
                  <>
                    , <a href={groupAt({ ...step, group })}>the group</a>
                    {parting?.episode && (
                      <>
                        ,{' '}
                        <a href={episodeAt({ ...step, group, episode: parting.episode.index })}>
                          the episode
                        </a>
                      </>
                    )}
                  </>
                )}
                {'. '}
              </>
            );
          })}
        </p>
      )}
      <p class="note">
        {divergence.looked === 'episodes'
          ? 'Every stored episode was compared, up to where they part. In a terminal: '
          : 'By the facts of steps and the weights after them; then by the groups, episodes and tokens of the step. Every stored episode is compared when that is chosen above, and by '}
        <code class="command">{commandLine(`compare ${runs.join(' ')} --episodes`)}</code>.
      </p>
    </section>
  );
};

const Spec: FC<{ compared: Comparison }> = ({ compared: { runs, spec } }) => (
  <>
    <h2>What their specs differ in</h2>
    {spec === null ? (
      <p>That is not known: not all of them can be read.</p>
    ) : spec.length === 0 ? (
      <p>In nothing but the run's name.</p>
    ) : (
      <Scroll label="spec differences">
        <table>
          <Heads first="field" runs={runs.map(({ run }) => run)} />
          <tbody>
            {spec.slice(0, MOST_ROWS).map(({ path, values }) => (
              <tr>
                <th scope="row">
                  <Text value={path} max={300} />
                </th>
                {values.map((value) => (
                  <td>{value === null ? '–' : <Text value={value} max={300} />}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        {spec.length > MOST_ROWS && <p class="note">{spec.length - MOST_ROWS} more are not shown</p>}
      </Scroll>
    )}
  </>
);

const SHARES = /^(success|outcomes|failures)\/|truncated|equal-groups|-share$/;

const Charts: FC<{ compared: Comparison; figures: Asking['figures'] }> = ({ compared, figures }) => {
  const { along } = compared;
  const rest = [...compared.figures.keys()].filter((name) => !CURATED.some(([one]) => one === name));
  const chosen = [
    ...CURATED,
    ...(figures === 'all' ? rest.toSorted().map((name) => [name, name] as const) : []),
  ];
  return (
    <>
      <h2>Curves</h2>
      <p class="note">
        By the {NAMES[along]}
        {along === 'time' && ', without what passed between them'}
        {along === 'tokens' && ', baselines and corrections included, evaluations not'}; each figure is that
        of a step, as <code>{commandLine('metrics RUN')}</code> has it.
      </p>
      <div class="figures">
        {chosen.flatMap(([name, heading]) => {
          const curves = compared.figures.get(name);
          if (!curves) return [];
          // Not every step is measured on held-out tasks: the line goes from measurement to measurement.
          const sparse = name.includes('held-out');
          const series = curves.map(({ run, points }) => ({
            name: run,
            points: sparse ? points.filter(([, y]) => y !== null) : points,
          }));
          const share = SHARES.test(name)
            ? { format: (y: number) => `${shortNumber(100 * y)} %`, low: 0 }
            : {};
          return [<Curves heading={heading} chart={{ series, unit: UNITS[along], ...share }} />];
        })}
      </div>
    </>
  );
};

const Tasks: FC<{ runs: readonly string[]; tasks: CommonTasks; only: Asking['tasks'] }> = ({
  runs,
  tasks: { at, tasks, success, solved },
  only,
}) => {
  const told = tasks.filter(({ of }) => only === 'all' || new Set(of.map(solvedOf)).size > 1);
  return (
    <>
      <h2>
        Tasks of <Text value={placeText(at)} max={120} /> that all were asked
      </h2>
      {tasks.length === 0 ? (
        <p>There is none: their tasks are others.</p>
      ) : (
        <>
          <p>
            {tasks.length} tasks.{' '}
            {runs.map((run, r) => (
              <>
                {run}: <Success of={success[r]!} />
                {'. '}
              </>
            ))}
            {solved &&
              `Both solve ${solved.both}, ${runs[0]!} alone ${solved.first}, ${runs[1]!} alone ${solved.second}, neither ${solved.neither}.`}
          </p>
          {told.length === 0 ? (
            <p>Each of them is solved by all runs alike.</p>
          ) : (
            <Scroll label="common tasks">
              <table>
                <Heads first="task" runs={runs} />
                <tbody>
                  {told.slice(0, MOST_ROWS).map(({ ref, prompt, of }) => (
                    <tr data-item>
                      <th scope="row">
                        <Text
                          value={`${ref.environment} level ${ref.level}, ${ref.split} ${ref.index}`}
                          max={200}
                        />
                        <br />
                        <small>
                          <Text value={prompt} max={160} />
                        </small>
                      </th>
                      {of.map((some, r) => (
                        <td>
                          {some.map((one) => (
                            <>
                              <a class="chip" href={episodeAt({ run: runs[r]!, ...at, ...one })}>
                                {saidOf(one)}
                              </a>{' '}
                            </>
                          ))}
                        </td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
              {told.length > MOST_ROWS && <p class="note">{told.length - MOST_ROWS} more are not shown</p>}
            </Scroll>
          )}
        </>
      )}
    </>
  );
};

/** Successes of a task's samples, as text. */
const solvedOf = (some: readonly CommonEpisode[]): string =>
  some
    .map(({ success }) => String(success))
    .toSorted()
    .join();

const saidOf = ({ success, reward }: CommonEpisode): string =>
  `${success === null ? 'not judged' : success ? 'solved' : 'not solved'}${reward === null ? '' : `, ${shortNumber(reward)}`}`;
