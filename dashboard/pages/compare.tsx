import { askedOfAll, commonTasks, compareRuns } from '../../runs/comparison/compare.ts';
import { divergenceOf } from '../../runs/comparison/divergence.ts';
import type { RunDivergence } from '../../runs/comparison/divergence.ts';
import type { App, Context } from '../context.ts';
import { Layout } from '../layout.tsx';
import { Unreadable } from '../parts/unreadable.tsx';
import { askingOf } from './compare/asking.ts';
import { Choice } from './compare/choice.tsx';
import { Overview } from './compare/overview.tsx';
import { PartingPanel } from './compare/parting.tsx';
import { Spec } from './compare/spec.tsx';
import { ComparisonCharts } from './compare/charts.tsx';
import { ComparedTasks } from './compare/tasks.tsx';

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
    const divergences: RunDivergence[] = [];
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
          <PartingPanel divergence={divergence} />
        ))}
        <Spec compared={compared} />
        <ComparisonCharts compared={compared} figures={asking.figures} />
        {tasks && <ComparedTasks runs={asking.runs} tasks={tasks} only={asking.tasks} />}
      </Layout>,
    );
  });
}
