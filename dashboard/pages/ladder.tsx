import type { Child, FC } from 'hono/jsx';
import { decimals } from '../../core/decimals.ts';
import type { Account, Budget } from '../../core/ladder/budget.ts';
import type { LedgerTotals } from '../../core/ladder/ledger.ts';
import type { LadderCalibration, LadderObserver, LadderRung, LadderView } from '../../runs/ladder/ladder.ts';
import type { DeferredView } from '../../runs/ladder/deferred.ts';
import { calibrationPlot } from '../../svg/calibration.ts';
import { figure, group } from '../../svg/elements.ts';
import { funnelChart, funnelHeight } from '../../svg/funnel.ts';
import type { FunnelTier } from '../../svg/funnel.ts';
import { candidateAt, runAt } from '../address.ts';
import type { App, Context } from '../context.ts';
import { Layout, Live } from '../layout.tsx';
import { Figure } from '../parts/chart.tsx';
import { percent } from '../../core/percent.ts';
import { amount, dollars, duration, Num, priceText } from '../parts/numbers.tsx';
import { Scroll } from '../parts/scroll.tsx';
import { Text } from '../parts/text.tsx';
import { Unreadable } from '../parts/unreadable.tsx';

/** `/runs/RUN/ladder`: who climbed, what it cost, how far each rung can be trusted, and what was left out. */
export function ladderPage(app: App, { ladder }: Context & { ladder: LadderObserver }): void {
  app.get('/runs/:run/ladder', async (c) => {
    const run = c.req.param('run');
    const view = await ladder.look(run);
    return c.html(
      <Layout
        title="Verification ladder"
        crumbs={[
          { href: '/', label: 'Runs' },
          { href: runAt(run), label: run },
        ]}
        live={view?.budgetsFrom === 'workflow'}
      >
        {view === null ? (
          <p>
            This run has no verification ladder: its rewards are what fast verifiers say, and nothing was
            asked of dearer ones.
          </p>
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
      {view.calibrations.length === 0 && <p>There is one rung only: nothing is compared.</p>}
      <div class="figures">
        {view.calibrations.map((one) => (
          <Calibrated of={one} />
        ))}
      </div>
    </Live>
    <Live id="deferred">
      <Deferred view={view} />
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

const FUNNEL_WIDTH = 640;

const Funnel: FC<{ view: LadderView }> = ({ view: { rungs, ledger } }) => {
  const tiers = rungs.map((rung) => tierOf(rung, ledger.episodes));
  const height = funnelHeight(tiers.length);
  const parts = funnelChart(FUNNEL_WIDTH, height, {
    heading: 'Who was judged and sent up, what was answered, and what it cost',
    note: 'pale: episodes; full: those that go on, then subjects that were answered; logarithmic',
    tiers,
  });
  const label = `Funnel: ${tiers.map(({ name, reached, passed }) => `${name}: ${reached.words}, ${passed.words}`).join('; ')}`;
  return (
    <>
      <h2>Funnel</h2>
      <div class="funnel">
        <Figure heading="By rung" svg={figure(label, FUNNEL_WIDTH, height, parts)} wide />
      </div>
      <Scroll label="rungs">
        <table>
          <caption>
            Episodes are those that the lowest rung judged, and that were sent up to the others. Deferred,
            accepted and rejected are decisions about episodes; subjects are what a verifier was asked about,
            each once. Computed: for this run; shared: computed for another one, or before. People were asked
            for as long as their reviews were open, which is no working time and in no other figure.
          </caption>
          <thead>
            <tr>
              <th scope="col">rung</th>
              {COLUMNS.map(([name]) => (
                <th scope="col" class="number">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rungs.map((rung) => (
              <tr>
                <th scope="row">
                  <Text value={rung.verifier} max={100} />{' '}
                  <small class="whole">{rung.tier ?? 'no rung: measured or swept'}</small>
                </th>
                {COLUMNS.map(([name, value]) => (
                  <td class="number">
                    {rung.rung !== 0 || OF_THE_LOWEST.has(name)
                      ? value(rung)
                      : name === 'episodes'
                        ? ledger.episodes.judged
                        : '–'}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
};

/** The lowest rung judges every episode where it is rolled out; the others are asked about subjects, at a price. */
function tierOf(
  { verifier, tier, rung, totals, answered }: LadderRung,
  { judged, climbed }: LadderView['ledger']['episodes'],
): FunnelTier {
  const count = (value: number, what: string) => ({
    count: value,
    words: `${value.toLocaleString('en')} ${what}`,
  });
  const about = { name: tier === null ? verifier : `${tier}: ${verifier}`, className: tier ?? 'fast' };
  if (rung === 0) {
    const details = `${totals.rejected.toLocaleString('en')} rejected by its verdict alone`;
    return {
      ...about,
      reached: count(judged, 'episodes'),
      passed: count(climbed, 'to go on'),
      cost: '',
      details,
    };
  }
  return {
    ...about,
    reached: count(totals.escalated, 'sent up'),
    passed: count(answered, 'answered'),
    cost: `${totals.computed.toLocaleString('en')} computed, ${duration(totals.seconds)}, ${dollars(totals.usd)}`,
    details: detailsOf(totals),
  };
}

/** What the ledger knows of the lowest rung, too. */
const OF_THE_LOWEST: ReadonlySet<string> = new Set(['accepted', 'rejected']);

function detailsOf({ shared, abstained, deferred, late, afterRun, lost }: LedgerTotals): string {
  const all: [number, string][] = [
    [shared, 'shared'],
    [abstained, 'abstained'],
    [deferred, 'deferred'],
    [late, 'late'],
    [afterRun, 'after the run'],
    [lost, 'attempts lost'],
  ];
  const some = all.filter(([count]) => count > 0);
  return some.map(([count, what]) => `${count.toLocaleString('en')} ${what}`).join(', ');
}

const COLUMNS: readonly (readonly [name: string, value: (rung: LadderRung) => string])[] = [
  ['episodes', ({ totals }) => String(totals.escalated)],
  ['subjects', ({ asked }) => String(asked)],
  ['answered', ({ answered }) => String(answered)],
  ['computed', ({ totals }) => String(totals.computed)],
  ['shared', ({ totals }) => String(totals.shared)],
  ['abstained', ({ totals }) => String(totals.abstained)],
  ['late', ({ totals }) => String(totals.late)],
  ['after the run', ({ totals }) => String(totals.afterRun)],
  [
    'attempts lost',
    ({ totals: { lost, lostSeconds } }) => (lost === 0 ? '0' : `${lost} (${duration(lostSeconds)})`),
  ],
  ['deferred', ({ totals }) => String(totals.deferred)],
  ['accepted', ({ totals }) => String(totals.accepted)],
  ['rejected', ({ totals }) => String(totals.rejected)],
  ['time', ({ totals }) => duration(totals.seconds)],
  ['people asked for', ({ totals }) => (totals.openSeconds === 0 ? '–' : duration(totals.openSeconds))],
  ['cost', ({ totals }) => dollars(totals.usd)],
];

const Budgets: FC<{ view: LadderView }> = ({ view: { rungs, stage, budgetsFrom, waiting } }) => {
  const limited = rungs.flatMap(({ verifier, budget }) => (budget === null ? [] : [{ verifier, ...budget }]));
  return (
    <>
      <h2>Budgets</h2>
      <p class="note">
        {stage === null ? (
          'Nothing has climbed yet.'
        ) : (
          <>
            Of the stage <Text value={stage} max={100} />.
          </>
        )}{' '}
        {budgetsFrom === 'ledger'
          ? "The ladder's workflow does not answer, so this is what the ledger says was spent; what is promised to computations under way is not known."
          : `${amount(waiting ?? 0, 'computation')} ${waiting === 1 ? 'has' : 'have'} been asked for and ${waiting === 1 ? 'has' : 'have'} not answered.`}
        {rungs.some(({ totals }) => totals.openSeconds > 0) &&
          ' The time of people is that for which their reviews were open.'}
      </p>
      <Scroll label="budgets">
        <table>
          <thead>
            <tr>
              <th scope="col">rung</th>
              <th scope="col">of</th>
              <th scope="col" class="number">
                limit
              </th>
              <th scope="col" class="number">
                spent
              </th>
              <th scope="col" class="number">
                promised
              </th>
              <th scope="col" class="number">
                left
              </th>
            </tr>
          </thead>
          <tbody>
            {limited.flatMap(({ verifier, budget, account }) =>
              linesOf(budget, account, budgetsFrom === 'ledger').map(([what, ...cells], i) => (
                <tr>
                  <th scope="row">
                    {i === 0 ? <Text value={verifier} max={100} /> : <span class="muted">″</span>}
                  </th>
                  <td>{what}</td>
                  {cells.map((cell) => (
                    <td class="number">{cell}</td>
                  ))}
                </tr>
              )),
            )}
          </tbody>
        </table>
      </Scroll>
    </>
  );
};

const MEASURES: readonly (readonly ['count' | 'seconds' | 'usd', string, (value: number) => string])[] = [
  ['count', 'verdicts', String],
  ['seconds', 'time', duration],
  ['usd', 'cost', (usd) => dollars(usd)],
];

/** A line for each limit; one with what was spent where there is none. */
function linesOf(budget: Budget, account: Account, unknownPromises: boolean): string[][] {
  const lines = MEASURES.map(([field, what, show]) => {
    const limit = budget[field];
    const [spent, promised] = [account[field], account.reserved[field]];
    return [
      what,
      limit === undefined ? 'none' : show(limit),
      show(spent),
      unknownPromises ? 'not known' : show(promised),
      limit === undefined ? '–' : show(Math.max(0, limit - spent - promised)),
    ];
  });
  const perStep =
    budget.perStep === undefined ? [] : [['verdicts of one step', String(budget.perStep), '–', '–', '–']];
  return [...lines, ...perStep];
}

const PLOT = { left: 58, top: 10, size: 250 };

const Calibrated: FC<{ of: LadderCalibration }> = ({
  of: { from, to, points, count, known, line, deviation, holds },
}) => {
  const size: [number, number] = [PLOT.left + PLOT.size + 14, PLOT.top + PLOT.size + 46];
  const plot = calibrationPlot(
    { points, line, cheap: `score by ${from}`, dear: `score by ${to}` },
    PLOT.size,
  );
  const label = `${from} against ${to}: ${points.length} points${line === null ? '' : `, line ${lineInWords(from, to, line)}`}`;
  return (
    <Figure heading={`${from} → ${to}`} svg={figure(label, ...size, [group(PLOT.left, PLOT.top, plot)])}>
      <ul class="plain">
        <li>
          {known === null ? 'No pair has been counted yet.' : `${amount(known.n, 'pair')} counted`}
          {count > 0 &&
            `, ${points.length} of them drawn${count > points.length ? ` (the newest of ${count})` : ''}`}
        </li>
        {line !== null && (
          <li>
            {lineInWords(from, to, line)}
            {deviation !== null && `, give or take ${deviation.toFixed(2)}`}
          </li>
        )}
        {holds !== null && (
          <li>
            of {amount(holds.of, 'pass', 'passes')} of {from} {holds.held} held: the next one is expected to
            with {percent(holds.mean)}, give or take {percent(holds.deviation)}
          </li>
        )}
      </ul>
      <p class="note">Dashed: both say the same.</p>
    </Figure>
  );
};

const lineInWords = (
  from: string,
  to: string,
  { intercept, slope }: { intercept: number; slope: number },
): string =>
  `${to} ≈ ${decimals(intercept, 2)} ${slope < 0 ? '−' : '+'} ${Math.abs(slope).toFixed(2)} · ${from}`;

/** A link to what became of a subject, by the start of its digest. */
const SubjectLink: FC<{ run: string; verifier: string; digest: string }> = ({ run, verifier, digest }) => (
  <a href={candidateAt(run, verifier, digest)}>
    <code>
      <Text value={digest.slice(0, 12)} />
    </code>
  </a>
);

const Listing: FC<{ caption: string; columns: readonly string[]; children?: Child }> = ({
  caption,
  columns,
  children,
}) => (
  <Scroll label={caption}>
    <table>
      <caption>{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th scope="col">{column}</th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </Scroll>
);

const Deferred: FC<{ view: LadderView }> = ({ view: { run, deferred, rungs } }) => (
  <>
    <h2>Deferred</h2>
    {rungs.some(({ totals }) => totals.deferred > 0) && <p>{deferredText(rungs, deferred)}</p>}
    {deferred.count === 0 ? (
      <p>Nothing waits in the archive for a budget.</p>
    ) : (
      <Listing
        caption={`What no budget had room for and nobody has judged since: the best ${deferred.best.length} of ${deferred.count} by what the rung is expected to say. A sweep works through them in this order.`}
        columns={['expected', 'rung', 'subject', 'rests on']}
      >
        {deferred.best.map(({ value, verifier, digest, basis }) => (
          <tr data-item>
            <td class="number">{decimals(value, 3)}</td>
            <td>
              <Text value={verifier} max={100} />
            </td>
            <td>
              <SubjectLink run={run} verifier={verifier} digest={digest} />
            </td>
            <td>
              {basis === null
                ? 'no rung could judge it'
                : `${rungs.find(({ rung }) => rung === basis.rung)?.verifier ?? `rung ${basis.rung}`} said ${basis.score.toFixed(3)}`}
            </td>
          </tr>
        ))}
      </Listing>
    )}
  </>
);

/** The table counts decisions about episodes, and the list subjects: how the one comes to the other. */
export function deferredText(
  rungs: readonly Pick<LadderRung, 'totals'>[],
  { count, judged }: Pick<DeferredView, 'count' | 'judged'>,
): string {
  const decisions = rungs.reduce((sum, { totals }) => sum + totals.deferred, 0);
  return `${amount(decisions, 'decision')} to defer an episode, about ${amount(count + judged, 'subject')}: ${judged.toLocaleString('en')} judged since, ${count.toLocaleString('en')} open.`;
}

/** One that came when the run was over is not late: nothing waited for it. */
export function lateText(late: number, afterRun: number): string {
  const parts = [
    ...(late > 0 ? [`${amount(late, 'verdict')} came after the step that asked had gone on`] : []),
    ...(afterRun > 0 ? [`${amount(afterRun, 'verdict')} came after the end of the run`] : []),
  ];
  return `${parts.join('; ')}.`;
}

const Late: FC<{ view: LadderView }> = ({ view: { run, ledger, rungs } }) => {
  const { late, offered } = ledger;
  const afterRun = rungs.reduce((sum, { totals }) => sum + totals.afterRun, 0);
  return (
    <>
      <h2>Late verdicts</h2>
      {late.count === 0 ? (
        <p>No verdict came after its step had gone on.</p>
      ) : (
        <>
          <p>
            {lateText(late.count - afterRun, afterRun)}{' '}
            {offered.count === 0
              ? 'None changed a reward that was learnt from again.'
              : `They changed rewards of ${amount(offered.episodes, 'episode')}, learnt from again in ${amount(offered.count, 'offer')}.`}
          </p>
          <Verdicts
            run={run}
            caption={`The newest: ${amount(late.newest.length, 'verdict')}`}
            of={late.newest}
          />
          {offered.newest.length > 0 && (
            <Listing
              caption="What was learnt from again"
              columns={['in step', 'episodes of step', 'episodes']}
            >
              {offered.newest.toReversed().map(({ stage, step, fromStep, episodes }) => (
                <tr>
                  <td>
                    <Text value={stage} max={100} /> {step}
                  </td>
                  <td>{fromStep}</td>
                  <td class="number">{episodes}</td>
                </tr>
              ))}
            </Listing>
          )}
        </>
      )}
    </>
  );
};

const Newest: FC<{ view: LadderView }> = ({ view: { run, ledger } }) => (
  <>
    <h2>Newest verdicts</h2>
    {ledger.newest.length === 0 ? (
      <p>Nobody has answered yet.</p>
    ) : (
      <Verdicts
        run={run}
        caption={`The newest: ${amount(ledger.newest.length, 'verdict')}`}
        of={ledger.newest}
      />
    )}
  </>
);

const Verdicts: FC<{ run: string; caption: string; of: LadderView['ledger']['newest'] }> = ({
  run,
  caption,
  of,
}) => (
  <Listing caption={caption} columns={['subject', 'by', 'asked in', 'said', 'price']}>
    {of.toReversed().map(({ verifier, digest, stage, result, type, spent, late, afterRun, by }) => (
      <tr data-item>
        <td>
          <SubjectLink run={run} verifier={verifier} digest={digest} />
        </td>
        <td>
          <Text value={verifier} max={100} />
        </td>
        <td>
          <Text value={stage} max={100} />
        </td>
        <td>
          {result}
          {type !== undefined && (
            <>
              {' ('}
              <Text value={type} max={100} />)
            </>
          )}
          {late && (afterRun ? ', after the run' : ', late')}
        </td>
        <td>{spent === null ? 'shared: nothing' : priceText(spent, by === 'people')}</td>
      </tr>
    ))}
  </Listing>
);

const Spend: FC<{ view: LadderView }> = ({ view: { ledger } }) => {
  const rows = Object.entries(ledger.stages).flatMap(([stage, totals]) =>
    Object.entries(totals).flatMap(([verifier, sum]) =>
      sum.computed + sum.shared + sum.lost > 0 ? [{ stage, verifier, sum }] : [],
    ),
  );
  if (rows.length === 0) return null;
  return (
    <>
      <h2>Where it was spent</h2>
      <Listing
        caption="By stage or evaluation"
        columns={[
          'stage',
          'rung',
          'computed',
          'shared',
          'time',
          'people asked for',
          'cost',
          'lost attempts took',
        ]}
      >
        {rows.map(({ stage, verifier, sum }) => (
          <tr>
            <td>
              <Text value={stage} max={100} />
            </td>
            <td>
              <Text value={verifier} max={100} />
            </td>
            <td class="number">
              <Num value={sum.computed} />
            </td>
            <td class="number">
              <Num value={sum.shared} />
            </td>
            <td class="number">{duration(sum.seconds)}</td>
            <td class="number">{sum.openSeconds === 0 ? '–' : duration(sum.openSeconds)}</td>
            <td class="number">{dollars(sum.usd)}</td>
            <td class="number">{duration(sum.lostSeconds)}</td>
          </tr>
        ))}
      </Listing>
    </>
  );
};
