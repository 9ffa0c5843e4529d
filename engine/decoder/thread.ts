import { parentPort, workerData } from 'node:worker_threads';
import type { GradusError } from '../../core/errors.ts';
import type { FromThread, ThreadSettings, ToThread } from './messages.ts';
import { createDecoderBackend } from './load-backend.ts';
import { Scheduler } from './scheduler.ts';

/**
 * A decoder's thread: running the model blocks the event loop that it is called on, so it has one of its own.
 * A failure of the backend is not caught: it ends the thread, and the other side tells those who wait.
 */
function serve(port: NonNullable<typeof parentPort>, settings: ThreadSettings): void {
  const post = (message: FromThread) => port.postMessage(message);
  const scheduler = new Scheduler(
    ({ config, weights, exclusive }) =>
      createDecoderBackend(settings.backend, config, weights, {
        threads: settings.intraOpThreads,
        exclusive,
      }),
    settings,
    {
      done: (id) => post({ type: 'done', id }),
      sampled: (id, result) => post({ type: 'sampled', id, result }),
      failed: (id, { boundary, type, message, retryable }: GradusError) =>
        post({ type: 'failed', id, failure: { boundary, type, message, retryable } }),
    },
  );
  port.on('message', (message: ToThread) => {
    if (message.type === 'abort') scheduler.abort(message.id);
    else if (message.type === 'release') scheduler.release(message.session);
    else if (message.type === 'close') void scheduler.dispose().then(() => port.close());
    else void scheduler.submit(message);
  });
}

if (parentPort !== null) serve(parentPort, workerData as ThreadSettings);
