import { mergeExpositions } from '../../runs/metrics/exposition.ts';
import { runMetrics } from '../../runs/metrics/run-metrics.ts';
import { scrape } from '../../runs/metrics/scrape.ts';
import { prometheusText } from '../../runs/metrics/telemetry.ts';
import type { App, Context } from '../context.ts';

/** `/metrics`: of all runs, and what Temporal's SDK measures in the workers of this machine, in Prometheus's text format. */
export function metricsPage(app: App, { sources, workerMetrics = [] }: Context): void {
  const families = runMetrics(sources);
  app.get('/metrics', async (c) => {
    const [runs, workers] = await Promise.all([families(), Promise.all(workerMetrics.map(scrape))]);
    const missing = workers.flatMap(({ problem }) => (problem === null ? [] : [problem]));
    // A comment, which every reader of the format skips.
    const note = missing.map((problem) => `# ${problem.replaceAll(/\s+/g, ' ')}\n`).join('');
    const text = mergeExpositions([{ text: prometheusText(runs), labels: {} }, ...workers]);
    return c.body(`${text}${note}`, 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
  });
}
