import { fileURLToPath } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import { NativeConnection, Worker } from '@temporalio/worker';
import { durable } from '../../../activities/durable.ts';
import { LoopWatch } from '../../../workers/loop-watch.ts';
import { notifySupervisor, whenToStop } from '../../../workers/supervisor.ts';
import { readSettings } from '../../../workers/settings.ts';
import { watchedActivities } from '../../../workers/watched-activities.ts';

// A worker of the queue GRADUS_TEST_QUEUE whose one activity at its first attempt waits and keeps the event loop. After
// GRADUS_TEST_END_AFTER seconds of a kept loop it is ended.

const cell = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/** In naps: it needs no processor, which the workers beside it have. */
function keepForSeconds(seconds: number): void {
  const until = performance.now() + seconds * 1000;
  while (performance.now() < until) Atomics.wait(cell, 0, 0, 20);
}

const { temporalAddress, namespace } = readSettings();
const endAfterSeconds = Number(process.env['GRADUS_TEST_END_AFTER']);
const watch = new LoopWatch({ temporalAddress, namespace, endAfterSeconds });
const worker = await Worker.create({
  connection: await NativeConnection.connect({ address: temporalAddress }),
  namespace,
  taskQueue: process.env['GRADUS_TEST_QUEUE']!,
  workflowsPath: fileURLToPath(new URL('kept-loop-workflow.ts', import.meta.url)),
  interceptors: { activity: [watchedActivities(watch)] },
  activities: durable(
    {
      keepLoop: async (
        { seconds, waits = 0 }: { seconds: number; waits?: number },
        _: AbortSignal,
        tell?: (details: object) => void,
      ) => {
        const { attempt } = Context.current().info;
        console.error('keepLoop begins');
        tell?.({ waits });
        // So that whoever stops the worker or the server meets an attempt under way.
        if (attempt > 1) return attempt;
        await delay(waits * 1000);
        keepForSeconds(seconds);
        return attempt;
      },
    },
    watch,
  ),
});
whenToStop(() => worker.shutdown());
await watch.begin(notifySupervisor);
notifySupervisor({ ready: [], descriptions: [] });
await worker.run();
await watch.stop();
process.exit();
