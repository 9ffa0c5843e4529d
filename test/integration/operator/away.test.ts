import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDashboard } from '../../../dashboard/open.ts';
import type { Dashboard } from '../../../dashboard/server.ts';
import { questionAsked } from '../../../workflows/control/messages.ts';
import { gradusCommand } from '../../support/gradus-command.ts';
import { hollowActivities, verifyHeldUp } from '../../support/hollow-activities.ts';
import { ladderSpec } from '../../support/ladder-installation.ts';
import { until } from '../../support/run-client.ts';
import { Gate, startWorkflowLab } from '../../support/workflow-lab.ts';
import type { WorkflowLab } from '../../support/workflow-lab.ts';

// A person at a terminal, while another one has the dashboard open, and while Temporal is away for a moment.

const rollingOut = new Map<string, Gate>();
let lab: WorkflowLab;
let dashboard: Dashboard;
beforeAll(async () => {
  lab = await startWorkflowLab(({ runs }) => {
    const { verifier, ...others } = hollowActivities(runs);
    return { ...others, verifier: { ...verifier, verifyGroup: verifyHeldUp(rollingOut) } };
  });
  dashboard = await openDashboard(lab.settings, { actions: true, temporalUi: null });
}, 600_000);
afterAll(async () => {
  for (const gate of rollingOut.values()) gate.open();
  await dashboard?.close();
  await lab?.stop();
});

const spec = () => ladderSpec([{ verifier: 'near', passAtLeast: 0.5 }], { maxSteps: 50, groupsPerStep: 1 });

test('of two people who answer at once, on a page and in a terminal, one is told that the other was quicker', async () => {
  const run = 'asks';
  rollingOut.set(run, new Gate());
  const handle = await lab.runs.start(run, spec());
  await lab.runs.progress(handle, ({ phase }) => phase === 'rl');
  const gradus = gradusCommand(lab.stack);
  const at = new URL(`/runs/${run}`, dashboard.url);
  const token = await until(
    async () => /name="token" value="([^"]+)"/.exec(await (await fetch(at)).text())?.[1],
    300_000,
    () => 'the page has no forms',
  );
  for (const id of ['1', '2', '3']) {
    const effect = 'something';
    await handle.signal(questionAsked, {
      id,
      asker: 'nobody',
      reason: `why ${id}`,
      answers: [
        { answer: 'continue', effect },
        { answer: 'rollback', effect },
      ],
    });
    await lab.runs.progress(handle, ({ question }) => question?.id === id);
    const typing = gradus('decide', run, 'rollback', '--question', id);
    // The page is quicker than a command that has to start, unless it comes after.
    if (id === '2') await typing;
    const posting = fetch(`${at.href}/decide`, {
      method: 'POST',
      redirect: 'manual',
      headers: { origin: at.origin },
      body: new URLSearchParams({ token, answer: 'continue', question: id }),
    });
    const [posted, typed] = await Promise.all([posting, typing]);
    const text = [posted.status, await posted.text(), typed.code, typed.stderr].join(' ');
    expect([posted.status === 303, typed.code === 0].filter(Boolean), text).toHaveLength(1);
    expect(text).toContain('the run waits for no decision');
  }
  rollingOut.get(run)!.open();
  await handle.signal('stop');
  await handle.result();
});

test('who watches a run sees its end, though Temporal was away meanwhile', async () => {
  const run = 'watched';
  rollingOut.set(run, new Gate());
  const file = path.join(lab.stateDir, 'spec.json');
  await writeFile(
    file,
    JSON.stringify({
      ...spec(),
      stages: spec().stages.map((stage, i) => (i === 0 ? stage : { ...stage, maxSteps: 2 })),
    }),
  );
  const lines: string[] = [];
  const watching = gradusCommand(lab.stack, {}, { onErrorLine: (line) => lines.push(line) })(
    'start',
    file,
    '--id',
    run,
    '--no-check',
    '--watch',
  );
  const handle = lab.runs.client.workflow.getHandle(run);
  await lab.runs.progress(handle, ({ phase }) => phase === 'rl');
  const said = (what: string) => lines.filter((line) => line.includes(what)).length;
  /** What it said last: that the server is away, or that it is back. */
  const hears = (away: boolean) =>
    until(
      () => Promise.resolve(said('does not answer') > said('answers again') === away || undefined),
      300_000,
      () => `the command has not said that the server is ${away ? 'away' : 'back'}: ${lines.join('\n')}`,
    );
  for (let times = 1; times <= 2; times++) {
    lab.stack.temporal.kill();
    await hears(true);
    await lab.stack.temporal.restart();
    await hears(false);
    expect(said('answers again')).toBeGreaterThanOrEqual(times);
  }
  rollingOut.get(run)!.open();
  const watched = await watching;
  expect(watched, watched.stderr).toMatchObject({ code: 0 });
  expect(watched.stdout).toMatch(/steps 3, /);
});
