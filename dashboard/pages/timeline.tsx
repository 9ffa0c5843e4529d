import { commandLine } from '../../core/installation.ts';
import type { FC } from 'hono/jsx';
import { GradusError } from '../../core/errors.ts';
import { parsePlace, placeOf } from '../../runs/episodes/place.ts';
import type { Place } from '../../runs/episodes/place.ts';
import { lanesOf, lossInWords, secondsInWords } from '../../runs/timeline/timeline-lanes.ts';
import { readTimeline } from '../../runs/timeline/timeline.ts';
import type { Timeline, TimelineActivity } from '../../runs/timeline/timeline.ts';
import { lanes } from '../../svg/lanes.ts';
import type { App, Context } from '../context.ts';
import { Layout, Live } from '../layout.tsx';
import { Figure } from '../parts/chart.tsx';
import { Time } from '../parts/numbers.tsx';
import { crumbsOfEpisode } from '../parts/crumbs.ts';
import { Table, numeric } from '../parts/table.tsx';
import { Text } from '../parts/text.tsx';
import { WorkflowLink } from '../parts/workflow-link.tsx';

const PLACE = '/runs/:run/episodes/:stage/:step/:group/:episode/timeline';

/** The durable timeline of an episode: attempts, workers, what was lost, what that cost, what was not repeated. */
export function timelinePage(app: App, context: Context): void {
  app.get(PLACE, async (c) => {
    const { run, stage, step, group, episode } = c.req.param();
    const place = parsePlace([run, stage, step, group, episode].join('/'));
    return c.html(<Page place={place} timeline={await timelineOrWhy(context, place)} context={context} />);
  });
}

/** That a history is gone, or whoever has it is away, is no fault of who asks: the page says so. */
async function timelineOrWhy({ sources }: Context, place: Place): Promise<Timeline | GradusError> {
  try {
    return await readTimeline(sources, place, place.episode);
  } catch (error) {
    if (error instanceof GradusError && (error.type === 'no-history' || error.retryable)) return error;
    throw error;
  }
}

const Page: FC<{ place: Place; timeline: Timeline | GradusError; context: Context }> = ({
  place,
  timeline,
  context,
}) => (
  <Layout
    title={`Timeline of ${placeOf(place)}`}
    crumbs={crumbsOfEpisode(place)}
    live={timeline instanceof GradusError ? timeline.retryable : timeline.to === null}
  >
    <Live id="timeline">
      {timeline instanceof GradusError ? (
        <p class={timeline.retryable ? 'stale' : 'note'} role="status">
          <Text value={timeline.message} />
        </p>
      ) : (
        <Drawn timeline={timeline} context={context} />
      )}
    </Live>
    <p class="note">
      In a terminal: <code class="command">{commandLine(`timeline ${placeOf(place)}`)}</code>
    </p>
  </Layout>
);

const Drawn: FC<{ timeline: Timeline; context: Context }> = ({ timeline, context }) => {
  const { activities, from, to, asOf, leftOut, workflowId, runId } = timeline;
  const end = to ?? asOf;
  const losses = activities.filter(({ lost }) => lost !== null);
  return (
    <>
      <p>
        From <Time at={from} /> UTC, {secondsInWords((end - from) / 1000)}
        {to === null && ' so far'}. <Lost timeline={timeline} />
      </p>
      {losses.length > 0 && (
        <ul>
          {losses.map((activity) => (
            <li>
              <Text value={`${activity.name}: ${lossInWords(activity)!}`} max={1000} />
            </li>
          ))}
        </ul>
      )}
      <Figure
        heading="Activities over time"
        wide
        svg={lanes(lanesOf(timeline), {
          title: `${activities.length} activities; the table below has all of them`,
          from: 0,
          to: end - from,
          width: 1100,
        })}
      >
        <ul class="legend bars">
          <li class="bar-key-done">a successful attempt</li>
          <li class="bar-key-lost">within this time attempts were lost</li>
          <li class="bar-key-waited">waited for a worker</li>
        </ul>
      </Figure>
      <Activities activities={activities} from={from} asOf={asOf} />
      {leftOut.length > 0 && (
        <p class="note">
          Left out: <Text value={leftOut.join('; ')} />
        </p>
      )}
      <p class="note">
        Of an activity, Temporal keeps the last attempt, the number of attempts before it, and how the last of
        those ended, but neither when they began nor on which worker. So a lost attempt is drawn as the time
        within which it lies. Its cost has a lower bound (the silence after which a worker counts as lost, and
        the pause before the next attempt) and an upper one (until the successful attempt began). All
        activities of the group: <WorkflowLink context={context} workflowId={workflowId} runId={runId} />
      </p>
    </>
  );
};

const Lost: FC<{ timeline: Timeline }> = ({ timeline: { lost } }) => {
  const { attempts, atLeast, atMost } = lost;
  if (attempts === 0) return <>No attempt was lost.</>;
  return (
    <strong>
      {attempts} attempt{attempts === 1 ? ' was' : 's were'} lost, which cost{' '}
      {atLeast !== null && atLeast > 0 && `at least ${secondsInWords(atLeast)} and `}at most{' '}
      {secondsInWords(atMost)}.
    </strong>
  );
};

const Activities: FC<{ activities: readonly TimelineActivity[]; from: number; asOf: number }> = ({
  activities,
  from,
  asOf,
}) => (
  <Table
    label="activities"
    caption="Seconds since the group began; “waited” is from scheduling to the last attempt"
    columns={[
      'activity',
      'attempt',
      'worker',
      numeric('asked for'),
      numeric('waited'),
      numeric('took'),
      'became',
    ]}
  >
    {activities.map(({ name, tool, attempts, worker, scheduled, started, ended, state, fault }) => (
      <tr>
        <td>
          <Text value={tool === null ? name : `${name}: ${tool}`} max={100} />
        </td>
        <td>{attempts === 0 ? '–' : attempts}</td>
        <td>{worker === null ? '–' : <Text value={worker} max={100} />}</td>
        <td class="number">{((scheduled - from) / 1000).toFixed(2)}</td>
        <td class="number">{(((started ?? ended ?? asOf) - scheduled) / 1000).toFixed(2)}</td>
        <td class="number">{started === null ? '–' : (((ended ?? asOf) - started) / 1000).toFixed(2)}</td>
        <td>
          {state}
          {fault !== null && (
            <>
              {': '}
              <Text value={fault.message} max={500} />
            </>
          )}
        </td>
      </tr>
    ))}
  </Table>
);
