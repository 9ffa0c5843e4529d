import { GradusError } from '../../core/errors.ts';
import { HELD_OUT } from '../../core/names.ts';
import { NO_REWARD, rowsOfStep } from '../../runs/episodes/episode-rows.ts';
import { placeNumber } from '../../runs/episodes/place.ts';
import type { RunObserver } from '../../runs/overview/run.ts';
import { stepFolder } from '../../runs/episodes/group-at.ts';
import { groupsIn } from '../../runs/episodes/stored-groups.ts';
import type { StoredStep } from '../../store/training/step-facts.ts';
import { reweighAt, stepAt } from '../address.ts';
import type { App, Context } from '../context.ts';
import { Layout } from '../layout.tsx';
import { crumbsOfRun } from '../parts/crumbs.ts';
import { pageIn, rowsOfPage } from '../parts/pages.tsx';
import { staleOf } from '../parts/stale.ts';
import { Unreadable } from '../parts/unreadable.tsx';
import { STEP_ROWS } from './step/paged.ts';
import type { Paged } from './step/paged.ts';
import { StepTasks, isEvaluation } from './step/tasks.tsx';
import { Facts } from './step/facts.tsx';
import { Rewards } from './step/rewards.tsx';
import { Groups } from './step/groups.tsx';
import { FailedEpisodes } from './step/failed.tsx';

/** Steps of more groups than this are read a page at a time, in their order. */
const MOST_GROUPS = 2000;

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
    const some = isLarge ? { some: rowsOfPage(stored, page, STEP_ROWS) } : {};
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
        crumbs={crumbsOfRun(run)}
        prev={at > 0 ? beside(steps[at - 1]) : null}
        next={at < 0 ? null : beside(steps[at + 1])}
        stale={staleOf(view)}
      >
        <Unreadable of={damaged} />
        {facts && <Facts run={run} facts={facts} evaluated={evaluated.length > 0} />}
        {facts?.rollout && view.spec && (
          <p>
            <a href={reweighAt({ run, stage, step })}>Re-weigh its reward</a>
          </p>
        )}
        <Rewards rows={rows.filter(({ hinted }) => !hinted)} truncated={truncated} />
        {isLarge && (
          <p class="note">
            Of {stored.length} groups a page reads {STEP_ROWS}, in their order: what follows, and the
            histogram, is of these alone.
          </p>
        )}
        {isEvaluation(rows) ? (
          <StepTasks paged={paged} rows={rows} />
        ) : (
          <Groups paged={paged} rows={rows} truncated={truncated} greedy={greedy} />
        )}
        <FailedEpisodes run={run} rows={rows} />
      </Layout>,
    );
  });
}
