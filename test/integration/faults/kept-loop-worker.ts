import { fileURLToPath } from 'node:url';
import { Context } from '@temporalio/activity';
import { NativeConnection, Worker } from '@temporalio/worker';
import { durable } from '../../../activities/durable.ts';
import { LoopWatch } from '../../../workers/loop-watch.ts';
import { readSettings } from '../../../workers/settings.ts';
import { watchedActivities } from '../../../workers/watched-activities.ts';

// A worker whose one activity keeps its event loop, at its first attempt.

function keepForSeconds(seconds: number): void {
  const until = performance.now() + seconds * 1000;
  while (performance.now() < until);
}

const { temporalAddress, namespace } = readSettings();
const watch = new LoopWatch({ temporalAddress, namespace, endAfterSeconds: 20 });
const worker = await Worker.create({
  connection: await NativeConnection.connect({ address: temporalAddress }),
  namespace,
  taskQueue: 'kept-loop',
  workflowsPath: fileURLToPath(new URL('kept-loop-workflow.ts', import.meta.url)),
  interceptors: { activity: [watchedActivities(watch)] },
  activities: durable({
    keepLoop: async ({ seconds }: { seconds: number }) => {
      const { attempt } = Context.current().info;
      if (attempt === 1) keepForSeconds(seconds);
      return attempt;
    },
  }),
});
await watch.begin();
process.once('SIGTERM', () => worker.shutdown());
await worker.run();
await watch.stop();
process.exit();
