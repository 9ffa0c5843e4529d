import type { FC } from 'hono/jsx';
import type { LadderObserver, LadderView } from '../../runs/ladder/ladder.ts';

import type { App, Context } from '../context.ts';
import { Layout, Live } from '../layout.tsx';
import { crumbsOfRun } from '../parts/crumbs.ts';
import { Text } from '../parts/text.tsx';
import { Unreadable } from '../parts/unreadable.tsx';
import { Funnel } from './ladder/funnel.tsx';
import { Budgets } from './ladder/budgets.tsx';
import { Calibrated } from './ladder/calibration.tsx';
import { DeferredTable } from './ladder/deferred.tsx';
import { Late } from './ladder/late.tsx';
import { Newest } from './ladder/verdicts.tsx';
import { Spend } from './ladder/spend.tsx';

/** `/runs/RUN/ladder`: who was escalated, what it cost, how far each tier can be trusted, and what was left out. */
export function ladderPage(app: App, { ladder }: Context & { ladder: LadderObserver }): void {
  app.get('/runs/:run/ladder', async (c) => {
    const run = c.req.param('run');
    const view = await ladder.look(run);
    return c.html(
      <Layout title="Verification ladder" crumbs={crumbsOfRun(run)} live={view?.budgetsFrom === 'workflow'}>
        {view === null ? (
          <p>This run has no verification ladder: fast verifiers alone judge its episodes.</p>
        ) : (
          <Ladder view={view} />
        )}
      </Layout>,
    );
  });
}

const Ladder: FC<{ view: LadderView }> = ({ view }) => (
  <>
    <Unreadable of={view.unreadable} />
    <Live id="funnel">
      <Funnel view={view} />
    </Live>
    <Live id="budgets">
      <Budgets view={view} />
    </Live>
    <Live id="calibration">
      <h2>Calibration</h2>
      {view.calibrations.length === 0 && <p>There is only one tier, so nothing is compared.</p>}
      <div class="figures">
        {view.calibrations.map((one) => (
          <Calibrated of={one} />
        ))}
      </div>
    </Live>
    <Live id="deferred">
      <DeferredTable view={view} />
    </Live>
    <Live id="late">
      <Late view={view} />
    </Live>
    <Live id="newest">
      <Newest view={view} />
    </Live>
    <Live id="spent">
      <Spend view={view} />
    </Live>
    {view.ledger.unreadable.length > 0 && (
      <p class="warning">
        {view.ledger.unreadable.length} pages of the ledger cannot be read and are not counted:{' '}
        <Text value={view.ledger.unreadable[0]!.message} max={500} />
      </p>
    )}
  </>
);
