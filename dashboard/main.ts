import { messageOf } from '../core/errors.ts';
import { readSettings } from '../workers/settings.ts';
import { dashboardToken, openDashboard } from './open.ts';
import type { OpenOptions } from './open.ts';

// The dashboard as a process of its own, beside the workers of `dev` and `demo`: a page of a large run must keep nobody
// else's event loop.

async function main(): Promise<void> {
  // It was for our own modules. Those of users, which processes of this one load, have their own.
  delete process.env['TSX_TSCONFIG_PATH'];
  const options = JSON.parse(process.argv[2]!) as OpenOptions;
  // Whoever lists processes sees their arguments.
  const opened = await openDashboard(readSettings(), { ...options, password: dashboardToken() });
  const stop = (): void => void opened.close().then(() => process.exit(0));
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  process.once('disconnect', stop);
  process.send?.({ ready: opened.url });
}

main().catch((error: unknown) => {
  const why = messageOf(error);
  console.error(`dashboard: ${why}`);
  if (process.connected) process.send?.({ failed: why }, () => process.exit(1));
  else process.exit(1);
});
