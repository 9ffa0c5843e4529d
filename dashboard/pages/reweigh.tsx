import type { FC } from 'hono/jsx';
import type { BeforeAfter, ReweighedEpisode, ReweighedTask } from '../../core/algorithms/reweigh.ts';
import { placeNumber } from '../../runs/episodes/place.ts';
import { groupNumber, reproductionText, summaryOf } from '../../runs/reweigh/reweigh-words.ts';
import { reweighStep } from '../../runs/reweigh/reweigh.ts';
import type { ReweighedStep } from '../../runs/reweigh/reweigh.ts';
import type { RewardField } from '../../spec/reward-changes.ts';
import { histogram, shortNumber } from '../../svg/charts.ts';
import { episodeAt, reweighAt, taskAt } from '../address.ts';
import type { App, Context } from '../context.ts';
import { Layout } from '../layout.tsx';
import { crumbsOfStep } from '../parts/crumbs.ts';
import { Figure } from '../parts/chart.tsx';
import { Table, numeric } from '../parts/table.tsx';
import { Text } from '../parts/text.tsx';

/** Rows of a table; the terminal's --json has all. */
const MOST_ROWS = 200;

/** `/runs/RUN/reweigh/STAGE/STEP?format.weight=0.5`: what a step would have taught by another reward. */
export function reweighPage(app: App, { sources }: Context): void {
  app.get('/runs/:run/reweigh/:stage/:step', async (c) => {
    const { run, stage } = c.req.param();
    const place = { run, stage, step: placeNumber('step', c.req.param('step')) };
    const set = new Map<string, string>();
    for (const [name, value] of Object.entries(c.req.query())) set.set(read(name), read(value.trim()));
    const done = await reweighStep(sources.store, place, set);
    return c.html(<Page step={done} />);
  });
}

/** A verifier's name may have anything in it, and an attribute shows nothing of what it hides. */
const written = (text: string): string => (/^[\w:.+ -]+$/.test(text) ? text : `~${encodeURIComponent(text)}`);

function read(text: string): string {
  try {
    return text.startsWith('~') ? decodeURIComponent(text.slice(1)) : text;
  } catch {
    // Nobody has written it so.
    return text;
  }
}

const Page: FC<{ step: ReweighedStep }> = ({ step }) => {
  const { stage, step: number, changes, limits, tasks } = step;
  const touched = tasks.filter(({ episodes }) => episodes.some(isOther));
  const flipped = tasks.flatMap(({ episodes }) => episodes.filter((one) => one.flipped > 0));
  return (
    <Layout title={`Another reward for ${stage}, step ${number}`} crumbs={crumbsOfStep(step)}>
      <p class={step.reproduced.exactly === false ? 'warning' : 'note'}>
        <Text value={reproductionText(step)} max={1000} />
      </p>
      <Fields step={step} />
      {changes.length === 0 ? (
        <p>
          Change a field and compute: nothing is sampled, verified or scored for it, and nothing of the run
          changes.
        </p>
      ) : (
        <>
          <h2>What would differ</h2>
          <ul>
            {changes.map(({ field, from, to }) => (
              <li>
                <Text value={field} max={200} />: <Text value={from} max={200} /> →{' '}
                <Text value={to} max={200} />
              </li>
            ))}
          </ul>
          {[...summaryOf(step), ...limits].map((line) => (
            <p>{line}</p>
          ))}
          <Rewards tasks={tasks} />
          <Flipped step={step} episodes={flipped} />
          <Tasks step={step} tasks={touched} />
        </>
      )}
    </Layout>
  );
};

const isOther = ({ reward, advantage }: ReweighedEpisode): boolean =>
  reward.before !== reward.after || advantage.before !== advantage.after;

const Fields: FC<{ step: ReweighedStep }> = ({ step }) => {
  const now = new Map(step.changes.map(({ field, to }) => [field, to]));
  return (
    <form method="get" action={reweighAt(step)} class="filters">
      {step.fields.map((field) => (
        <label>
          <span>
            <Text value={field.name} max={200} />
            {now.has(field.name) && (
              <>
                {' '}
                (is <Text value={field.value} max={100} />)
              </>
            )}
          </span>
          <Input field={field} value={now.get(field.name) ?? field.value} />
        </label>
      ))}
      <button type="submit">Compute</button>
      {now.size > 0 && <a href={reweighAt(step)}>As it is</a>}
    </form>
  );
};

const Input: FC<{ field: RewardField; value: string }> = ({ field: { name, choices }, value }) =>
  choices === null ? (
    <input name={written(name)} value={value} inputmode="decimal" size={8} />
  ) : (
    <select name={written(name)}>
      {choices.map((choice) => (
        <option value={written(choice)} selected={choice === value}>
          <Text value={choice} max={100} />
        </option>
      ))}
    </select>
  );

const Rewards: FC<{ tasks: readonly ReweighedTask[] }> = ({ tasks }) => {
  const of = (when: 'before' | 'after'): number[] =>
    tasks.flatMap(({ episodes }) =>
      episodes.flatMap(({ reward }) => (reward[when] === null ? [] : [reward[when]])),
    );
  const both = [...of('before'), ...of('after')];
  if (both.length === 0) return null;
  const [low, high] = [both.reduce((a, b) => Math.min(a, b)), both.reduce((a, b) => Math.max(a, b))];
  const figure = (heading: string, values: number[]) => {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const label = `${heading}: ${values.length} trainable rewards${values.length === 0 ? '' : `, mean ${shortNumber(mean)}`}`;
    return (
      <Figure heading={heading} svg={histogram({ label, values, low, high })}>
        <p class="note">{label}</p>
      </Figure>
    );
  };
  return (
    <div class="figures">
      {figure('Rewards as they are', of('before'))}
      {figure('Rewards after the change', of('after'))}
    </div>
  );
};

const shown = (value: number | null): string => (value === null ? '–' : shortNumber(value));

const Change: FC<{ of: BeforeAfter<number | null> }> = ({ of: { before, after } }) => (
  <>{before === after ? shown(before) : `${shown(before)} → ${shown(after)}`}</>
);

const More: FC<{ count: number }> = ({ count }) =>
  count > MOST_ROWS ? (
    <p class="note">{count - MOST_ROWS} more are not shown; gradus reweigh --json has all.</p>
  ) : null;

const Flipped: FC<{ step: ReweighedStep; episodes: readonly ReweighedEpisode[] }> = ({ step, episodes }) => (
  <>
    <h2>Advantages of the other sign</h2>
    {episodes.length === 0 ? (
      <p>There is none.</p>
    ) : (
      <>
        <Table
          label="episodes whose advantage has the other sign"
          columns={[
            'episode',
            numeric('reward'),
            numeric('advantage'),
            numeric('tokens of the other sign'),
            'components of its reward',
          ]}
        >
          {episodes.slice(0, MOST_ROWS).map((one) => (
            <tr data-item>
              <th scope="row">
                <EpisodeLink step={step} one={one} />
              </th>
              <td class="number">
                <Change of={one.reward} />
              </td>
              <td class="number">
                <Change of={one.advantage} />
              </td>
              <td class="number">
                {one.flipped} of {one.tokens}
              </td>
              <td>
                {one.contributions.map((part) => (
                  <div>
                    <Text value={part.name} max={100} /> <Change of={part} />
                  </div>
                ))}
              </td>
            </tr>
          ))}
        </Table>
        <More count={episodes.length} />
      </>
    )}
  </>
);

const EpisodeLink: FC<{ step: ReweighedStep; one: ReweighedEpisode }> = ({ step, one }) => {
  const group = groupNumber(one);
  const { run, stage, step: number } = step;
  return group === null ? (
    <>
      <Text value={one.group} max={100} />, {one.episode}
    </>
  ) : (
    <a href={episodeAt({ run, stage, step: number, group, episode: one.episode })}>
      {group}/{one.episode}
    </a>
  );
};

const yes = (is: boolean): string => (is ? 'yes' : 'no');

const TaskLink: FC<{ step: ReweighedStep; task: ReweighedTask }> = ({ step, task }) => {
  const { environment, level, split, index } = task.ref;
  const text = <Text value={`${environment} level ${level}, ${split} ${index}`} max={200} />;
  const [first] = task.episodes;
  const group = first ? groupNumber(first) : null;
  if (!first || group === null) return text;
  const { run, stage, step: number } = step;
  return <a href={taskAt({ run, stage, step: number, group, episode: first.episode })}>{text}</a>;
};

const Tasks: FC<{ step: ReweighedStep; tasks: readonly ReweighedTask[] }> = ({ step, tasks }) => {
  // Those that begin or stop to teach first.
  const ranked = tasks.toSorted((a, b) => Number(turns(b)) - Number(turns(a)));
  return (
    <>
      <h2>Tasks whose rewards or advantages differ</h2>
      {tasks.length === 0 ? (
        <p>There is none.</p>
      ) : (
        <>
          <Table
            label="tasks"
            columns={[
              'task',
              numeric('σ of its rewards'),
              'trained',
              numeric('other rewards'),
              numeric('of the other sign'),
            ]}
          >
            {ranked.slice(0, MOST_ROWS).map((task) => (
              <tr data-item>
                <th scope="row">
                  <TaskLink step={step} task={task} />
                  {task.hindsight && ' (with a hint, or as another task)'}
                </th>
                <td class="number">
                  <Change of={task.deviation} />
                </td>
                <td class={turns(task) ? 'warn' : ''}>
                  {turns(task)
                    ? `${yes(task.teaches.before)} → ${yes(task.teaches.after)}`
                    : yes(task.teaches.after)}
                </td>
                <td class="number">
                  {task.episodes.filter(({ reward }) => reward.before !== reward.after).length} of{' '}
                  {task.episodes.length}
                </td>
                <td class="number">{task.episodes.filter(({ flipped }) => flipped > 0).length}</td>
              </tr>
            ))}
          </Table>
          <More count={tasks.length} />
        </>
      )}
    </>
  );
};

const turns = ({ teaches }: ReweighedTask): boolean => teaches.before !== teaches.after;
