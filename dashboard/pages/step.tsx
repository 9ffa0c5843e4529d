import type { FC } from 'hono/jsx';
import { GradusError } from '../../core/errors.ts';
import type { TruncatedRule } from '../../core/episode/outcome.ts';
import { HELD_OUT } from '../../core/names.ts';
import { figuresOf } from '../../core/training/figures.ts';
import { total } from '../../core/training/stage-policy.ts';
import { comparedSamples, taskOf } from '../../runs/episodes/contrast.ts';
import { NO_REWARD, rowsOfStep } from '../../runs/episodes/episode-rows.ts';
import type { EpisodeRow } from '../../runs/episodes/episode-rows.ts';
import { placeNumber } from '../../runs/episodes/place.ts';
import type { RunObserver } from '../../runs/overview/run.ts';
import { stepFolder } from '../../runs/episodes/group-at.ts';
import { groupsIn } from '../../runs/episodes/stored-groups.ts';
import type { StoredStep } from '../../store/training/step-facts.ts';
import { histogram, shortNumber } from '../../svg/charts.ts';
import { episodeAt, reweighAt, runAt, stepAt, taskAt } from '../address.ts';
import type { App, Context } from '../context.ts';
import { Layout } from '../layout.tsx';
import { Figure } from '../parts/chart.tsx';
import { amount, duration, Num, Success } from '../parts/numbers.tsx';
import { pageIn, Pages, rowsOf } from '../parts/pages.tsx';
import { staleOf } from '../parts/stale.ts';
import { Text } from '../parts/text.tsx';
import { Unreadable } from '../parts/unreadable.tsx';
import { Scroll } from '../parts/scroll.tsx';

/** Rows of a table, and groups that are read where a page reads no more. */
const ROWS = 100;
/** Steps of more groups than this are read a page at a time, in their order. */
const MOST_GROUPS = 2000;
/** Rewards of a row, and of what is listed beside the table. */
const MOST_CHIPS = 64;
const MOST_LISTED = 200;

/** `/runs/RUN/steps/STAGE/STEP`: what a step rolled out, which of it taught something, and what failed. Also of an evaluation, by its name. */
export function stepPage(app: App, { sources, observer }: Context & { observer: RunObserver }): void {
  app.get('/runs/:run/steps/:stage/:step', async (c) => {
    const { run, stage } = c.req.param();
    const step = placeNumber('step', c.req.param('step'));
    const view = await observer.look(run);
    const reward = view.spec?.reward ?? NO_REWARD;
    const damaged = [...view.unreadable];
    const { truncated } = reward;
    const written = view.spec?.stages.find(({ name }) => name === stage);
    const greedy = written?.kind === 'rl' && written.plan.greedy;
    const folder = stepFolder(run, stage, step);
    const page = pageIn(c.req.query('page'));
    const stored = await groupsIn(sources.store, folder.folder);
    const isLarge = stored.length > MOST_GROUPS;
    const some = isLarge ? { some: rowsOf(stored, page, ROWS) } : {};
    const rows = await rowsOfStep(sources.store, run, folder, reward, { ...some, damaged });
    const paged: Paged = {
      run,
      page,
      to: (number) => `${stepAt({ run, stage, step })}${number === 1 ? '' : `?page=${number}`}`,
      stored: isLarge ? stored.length : null,
    };
    const measuredIn = stepFolder(run, `${stage}${HELD_OUT}`, step);
    const evaluated = await groupsIn(sources.store, measuredIn.folder);
    const steps = (view.steps.value ?? []).filter((one) => one.stage === stage);
    const at = steps.findIndex(({ stageStep }) => stageStep === step);
    const facts = steps[at];
    if (facts === undefined && stored.length === 0) {
      throw new GradusError('store', 'no-step', `${run} has kept nothing of step ${step} of ${stage}`);
    }
    const beside = (one: StoredStep | undefined): string | null =>
      one === undefined ? null : stepAt({ run, stage, step: one.stageStep });
    return c.html(
      <Layout
        title={`${stage}, step ${step}`}
        crumbs={[
          { href: '/', label: 'Runs' },
          { href: runAt(run), label: run },
        ]}
        prev={at > 0 ? beside(steps[at - 1]) : null}
        next={at < 0 ? null : beside(steps[at + 1])}
        stale={staleOf(view)}
      >
        <Unreadable of={damaged} />
        {facts && <Facts run={run} facts={facts} evaluated={evaluated.length > 0} />}
        {facts?.rollout && view.spec && (
          <p>
            <a href={reweighAt({ run, stage, step })}>Weigh its reward otherwise</a>
          </p>
        )}
        <Rewards rows={rows} truncated={truncated} />
        {isLarge && (
          <p class="note">
            Of {stored.length} groups a page reads {ROWS}, in their order: what follows, and the histogram, is
            of these alone.
          </p>
        )}
        {isEvaluation(rows) ? (
          <Tasks paged={paged} rows={rows} />
        ) : (
          <Groups paged={paged} rows={rows} truncated={truncated} greedy={greedy} />
        )}
        <Failed run={run} rows={rows} />
      </Layout>,
    );
  });
}

/** The page of a table that is shown. */
interface Paged {
  run: string;
  page: number;
  to: (page: number) => string;
  /** Of a step that is read a page at a time: all groups of it. */
  stored: number | null;
}

/** What of a table's rows is shown: all that were read, where only a page was. */
const shownOf = <T,>({ page, stored }: Paged, all: readonly T[]): { rows: readonly T[]; last: number } =>
  stored === null
    ? { rows: rowsOf(all, page, ROWS), last: Math.ceil(all.length / ROWS) }
    : { rows: all, last: Math.ceil(stored / ROWS) };

/** One sample of each task. */
const isEvaluation = (rows: readonly EpisodeRow[]): boolean =>
  rows.length > 0 && new Set(rows.map(taskOf)).size === rows.length;

const Facts: FC<{ run: string; facts: StoredStep; evaluated: boolean }> = ({ run, facts, evaluated }) => {
  const { rollout, batch, learner, heldOut, decision, circumstances, alarms } = facts;
  return (
    <>
      <dl class="facts">
        <dt>step of the run</dt>
        <dd>
          {facts.step}; checkpoint{' '}
          <code>
            {facts.checkpoint.step}-{facts.checkpoint.weights.slice(0, 12)}
          </code>
          {facts.backend && `, by ${facts.backend}`}
        </dd>
        {rollout && (
          <>
            <dt>rolled out</dt>
            <dd>
              {amount(rollout.episodes, 'episode')}, {shortNumber(rollout.sampledTokens)} tokens, mean reward{' '}
              <Num value={rollout.rewardCount === 0 ? null : rollout.rewardSum / rollout.rewardCount} />;{' '}
              {Object.entries(rollout.outcomes)
                .filter(([, count]) => count > 0)
                .map(([kind, count]) => `${count} ${kind}`)
                .join(', ')}
            </dd>
          </>
        )}
        {(rollout?.failedGroups.length ?? 0) > 0 && (
          <>
            <dt class="bad">whole groups failed</dt>
            <dd>
              {rollout!.failedGroups.map((reason) => (
                <div>
                  <Text value={reason} max={500} />
                </div>
              ))}
            </dd>
          </>
        )}
        {batch && (
          <>
            <dt>learnt from</dt>
            <dd>
              {batch.sequences} sequences, {shortNumber(batch.maskedTokens)} of {shortNumber(batch.tokens)}{' '}
              tokens; {amount(batch.degenerateGroups, 'group')} without contrast
            </dd>
          </>
        )}
        {heldOut && (
          <>
            <dt>held-out success</dt>
            <dd>
              <Success of={total(heldOut.arms)} />{' '}
              {evaluated && (
                <a href={stepAt({ run, stage: `${facts.stage}${HELD_OUT}`, step: facts.stageStep })}>
                  its episodes
                </a>
              )}
            </dd>
          </>
        )}
        <dt>decision</dt>
        <dd>
          {decision.kind}
          {decision.reason && (
            <>
              {': '}
              <Text value={decision.reason} max={500} />
            </>
          )}
          {decision.question && ` A person was asked, and answered ${facts.answer ?? 'nothing yet'}.`}
        </dd>
        {alarms.length > 0 && (
          <>
            <dt class="bad">alarms</dt>
            <dd>{alarms.map(({ name }) => name).join(', ')}</dd>
          </>
        )}
        <dt>time</dt>
        <dd>
          {Object.entries(circumstances.seconds)
            .filter(([, seconds]) => seconds > 0)
            .map(([part, seconds]) => `${part} ${duration(seconds)}`)
            .join(', ')}
        </dd>
        {circumstances.incidents.length > 0 && (
          <>
            <dt class="warn">incidents</dt>
            <dd>
              {circumstances.incidents.map(({ function: name, kind, count, message }) => (
                <div>
                  <Text value={name} max={200} />: {kind} {count} times: <Text value={message} max={500} />
                </div>
              ))}
            </dd>
          </>
        )}
      </dl>
      <details>
        <summary>Every figure{learner === null ? '' : ', those of the learner included'}</summary>
        <dl class="facts">
          {Object.entries(figuresOf(facts)).map(([name, value]) => (
            <>
              <dt>
                <Text value={name} max={100} />
              </dt>
              <dd>{String(Number(value.toPrecision(6)))}</dd>
            </>
          ))}
        </dl>
      </details>
    </>
  );
};

const Rewards: FC<{ rows: readonly EpisodeRow[]; truncated: TruncatedRule }> = ({ rows, truncated }) => {
  const rewards = rows.flatMap(({ reward }) => (reward === null ? [] : [reward]));
  if (rewards.length === 0) return null;
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const [low, high] = rewards.reduce(
    ([least, most], reward) => [Math.min(least, reward), Math.max(most, reward)],
    [Infinity, -Infinity],
  );
  const cut = rows.filter(({ reward, outcome }) => reward !== null && outcome === 'truncated').length;
  const masked =
    truncated === 'mask' && cut > 0 ? `; ${cut} of them were cut off, and are not trained on` : '';
  const label = `Rewards of ${amount(rewards.length, 'episode')}: from ${shortNumber(low)} to ${shortNumber(high)}, mean ${shortNumber(mean)}${masked}`;
  return (
    <div class="figures">
      <Figure heading="Rewards" svg={histogram({ label, values: rewards })}>
        <p class="note">{label}</p>
      </Figure>
    </div>
  );
};

const Groups: FC<{
  paged: Paged;
  rows: readonly EpisodeRow[];
  truncated: TruncatedRule;
  greedy: boolean;
}> = ({ paged, rows, truncated, greedy }) => {
  const { run } = paged;
  const groups = comparedSamples(rows, truncated, { greedy }).toSorted(
    (a, b) => (b.deviation ?? -1) - (a.deviation ?? -1),
  );
  if (groups.length === 0) return <p>No episode of this step is kept.</p>;
  const shown = shownOf(paged, groups);
  const silent = groups.filter(({ deviation }) => deviation === null || deviation === 0);
  return (
    <>
      <h2>Groups, by how much their rewards differ</h2>
      <p class="note">
        {silent.length} of {groups.length} have no contrast: their rewards are all equal, or too few to be
        compared. What the samples of a tree are compared within is the tree.
        {greedy && ' The greedy samples that others are compared with are no groups.'}
      </p>
      <Scroll>
        <table>
          <thead>
            <tr>
              <th scope="col">task, a link to its samples</th>
              <th scope="col" class="number">
                deviation
              </th>
              <th scope="col" class="number">
                mean
              </th>
              <th scope="col" class="number">
                solved
              </th>
              <th scope="col">rewards, each a link to its episode</th>
            </tr>
          </thead>
          <tbody>
            {shown.rows.map(({ rows: some, mean, deviation, taught }) => (
              <tr data-item>
                <th scope="row">
                  <a href={taskAt({ run, ...some[0]! })}>
                    <Text value={taskOf(some[0]!)} max={200} />
                  </a>
                  {some[0]!.retried && ' (again)'}
                </th>
                <td class="number">
                  <Num value={deviation} />
                  {!taught && <span class="warn"> teaches nothing</span>}
                </td>
                <td class="number">
                  <Num value={mean} />
                </td>
                <td class="number">
                  {some.every(({ success }) => success === null)
                    ? '–'
                    : `${some.filter(({ success }) => success === true).length}/${some.length}`}
                </td>
                <td>
                  {some.slice(0, MOST_CHIPS).map((row) => (
                    <>
                      <a class="chip" href={episodeAt({ run, ...row })}>
                        {row.reward === null ? row.outcome : shortNumber(row.reward)}
                      </a>{' '}
                    </>
                  ))}
                  {some.length > MOST_CHIPS && <>and {some.length - MOST_CHIPS} more</>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <Pages label="groups" page={paged.page} last={shown.last} to={paged.to} />
    </>
  );
};

const Tasks: FC<{ paged: Paged; rows: readonly EpisodeRow[] }> = ({ paged, rows }) => {
  const { run } = paged;
  const shown = shownOf(paged, rows);
  return (
    <>
      <h2>Tasks</h2>
      <Scroll>
        <table>
          <thead>
            <tr>
              <th scope="col">task</th>
              <th scope="col">outcome</th>
              <th scope="col" class="number">
                reward
              </th>
              <th scope="col" class="number">
                turns
              </th>
              <th scope="col" class="number">
                tokens
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.rows.map((row) => (
              <tr data-item>
                <th scope="row">
                  <a href={episodeAt({ run, ...row })}>
                    <Text value={taskOf(row)} max={200} />
                  </a>
                </th>
                <td>
                  {row.outcome}
                  {row.success === true && ', solved'}
                </td>
                <td class="number">
                  <Num value={row.reward} />
                </td>
                <td class="number">{row.turns}</td>
                <td class="number">{row.sampledTokens}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <Pages label="tasks" page={paged.page} last={shown.last} to={paged.to} />
    </>
  );
};

/** Tasks of which no sample has succeeded, and what else came to nothing. */
const Failed: FC<{ run: string; rows: readonly EpisodeRow[] }> = ({ run, rows }) => {
  const tasks = new Map<string, EpisodeRow[]>();
  for (const row of rows) {
    const some = tasks.get(taskOf(row));
    if (some) some.push(row);
    else tasks.set(taskOf(row), [row]);
  }
  // Without the run's spec it is not known of any.
  const isKnown = rows.some(({ success }) => success !== null);
  const failed = [...tasks].filter(([, some]) => isKnown && some.every(({ success }) => success !== true));
  const lost = rows.filter(({ outcome }) => ['failed', 'abstained', 'pending'].includes(outcome));
  return (
    <>
      {failed.length > 0 && (
        <>
          <h2>Tasks that no sample has solved</h2>
          <details>
            <summary>
              {failed.length} of {tasks.size}
              {failed.length > MOST_LISTED && `, the first ${MOST_LISTED} of them`}
            </summary>
            <ul>
              {failed.slice(0, MOST_LISTED).map(([task, some]) => (
                <li data-item>
                  <a href={taskAt({ run, ...some[0]! })}>
                    <Text value={task} max={200} />
                  </a>
                </li>
              ))}
            </ul>
          </details>
        </>
      )}
      {lost.length > 0 && (
        <>
          <h2>Without a reward</h2>
          <ul>
            {lost.slice(0, MOST_LISTED).map((row) => (
              <li data-item>
                <a href={episodeAt({ run, ...row })}>
                  group {row.group}, sample {row.sample}
                </a>
                : {row.outcome}
                {row.boundary && ` at ${row.boundary}`} <Text value={row.reason ?? ''} max={300} />
              </li>
            ))}
          </ul>
          {lost.length > MOST_LISTED && <p>and {lost.length - MOST_LISTED} more</p>}
        </>
      )}
    </>
  );
};
