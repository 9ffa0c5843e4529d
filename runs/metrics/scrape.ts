import { readTextUpTo } from '../../core/byte-parts.ts';
import { messageOf } from '../../core/errors.ts';
import type { Exposition } from './exposition.ts';
import { timeoutSignal } from '../../core/timeout-signal.ts';

/** Where a worker process of this machine shows the metrics of Temporal's SDK. */
export interface WorkerMetrics {
  /** What the process is called in them. */
  worker: string;
  /** `http://127.0.0.1:PORT/metrics` */
  url: string;
}

const PATIENCE_MS = 2000;
const MOST_BYTES = 8 * 2 ** 20;

/** What a worker shows; nothing, and a line for a person, where it does not answer: it may be starting again. */
export async function scrape({
  worker,
  url,
}: WorkerMetrics): Promise<Exposition & { problem: string | null }> {
  const labels = { worker };
  try {
    const response = await fetch(url, { signal: timeoutSignal(PATIENCE_MS), redirect: 'error' });
    if (!response.ok) return { text: '', labels, problem: `${worker}: HTTP ${response.status}` };
    const text = await readTextUpTo(response.body, MOST_BYTES);
    if (text === undefined) throw new Error(`more than ${MOST_BYTES} bytes`);
    return { text, labels, problem: null };
  } catch (error) {
    return { text: '', labels, problem: `${worker}: ${messageOf(error)}` };
  }
}
