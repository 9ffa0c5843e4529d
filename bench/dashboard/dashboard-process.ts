import { openDashboard } from '../../dashboard/open.ts';
import { readSettings } from '../../workers/settings.ts';

// The dashboard in a process of its own, whose memory is then that of the dashboard alone: opened, and with its heap kept
// small, as everywhere. It is described by the variables that describe a worker, says where it is, and whenever it is asked
// the most that its heap has held.

export type FromDashboardProcess = { kind: 'ready'; url: string } | { kind: 'heap'; peakMegabytes: number };

/** Often enough to see what is thrown away between two collections. */
const LOOK_EVERY_MS = 20;

let peak = 0;
const look = (): void => void (peak = Math.max(peak, process.memoryUsage().heapUsed));
setInterval(look, LOOK_EVERY_MS).unref();

const tell = (message: FromDashboardProcess): void => void process.send!(message);
const { url } = await openDashboard(readSettings(), { actions: false, temporalUi: null, port: 0 });
process.on('message', () => {
  look();
  tell({ kind: 'heap', peakMegabytes: peak / 2 ** 20 });
});
process.once('disconnect', () => process.exit());
tell({ kind: 'ready', url });
