import type { ReplayRequest } from '../activities/replay/replay.ts';
import { GradusError, messageOf } from '../core/errors.ts';
import type { FromReplay } from '../runs/replay/jobs.ts';
import { readSettings } from '../workers/settings.ts';
import { runReplay } from './run-replay.ts';

// A replay as a process of its own: it has the weights and a decoder of the run, which no server of pages should have. It ends
// with whoever started it.

/** How often progress is told, milliseconds. */
const TELL_MS = 300;

async function main(): Promise<void> {
  const tell = (message: FromReplay, then: () => void = () => undefined): void =>
    void process.send?.(message, undefined, {}, then);
  process.once('disconnect', () => process.exit(1));
  let reported = 0;
  const onProgress = (tokens: number, total: number | null): void => {
    if (Date.now() - reported < TELL_MS) return;
    reported = Date.now();
    tell({ is: 'progress', tokens, total });
  };
  const end = (message: FromReplay): void => tell(message, () => process.exit(0));
  try {
    const request = JSON.parse(process.argv[2]!) as ReplayRequest;
    const { signal } = new AbortController();
    end({ is: 'done', answer: await runReplay(readSettings(), request, { signal, onProgress }) });
  } catch (error) {
    if (!(error instanceof GradusError)) console.error(error);
    end({ is: 'failed', reason: messageOf(error) });
  }
}

void main();
