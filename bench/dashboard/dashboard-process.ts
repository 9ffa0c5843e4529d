import { openDashboard } from '../../dashboard/open.ts';
import { readSettings } from '../../workers/settings.ts';
import { serveChild } from '../child.ts';

// The dashboard in a process of its own, whose memory is then that of the dashboard alone: opened, and with its heap kept
// small, as everywhere. It is described by the variables that describe a worker.

/** Often enough to see what is thrown away between two collections. */
const LOOK_EVERY_MS = 20;

let peak = 0;
const look = (): void => void (peak = Math.max(peak, process.memoryUsage().heapUsed));
setInterval(look, LOOK_EVERY_MS).unref();

const { url } = await openDashboard(readSettings(), { actions: false, temporalUi: null, port: 0 });
await serveChild({
  where: () => Promise.resolve({ url }),
  /** The most that its heap has held. */
  heap: () => {
    look();
    return Promise.resolve({ peakMegabytes: peak / 2 ** 20 });
  },
});
process.exit();
