import path from 'node:path';
import { startObjectStore } from '../infra/dev/object-store.ts';
import { readSettings } from '../workers/settings.ts';
import type { WorkerSettings } from '../workers/settings.ts';
import type { BenchOptions } from './bench.ts';
import { withTemporaryFolder } from './durable-run.ts';

/** An empty object store with an empty cache, as a plain run has them; gone when `use` has ended, whichever way. */
export function withPlainStore<T>(
  { say, signal }: BenchOptions,
  use: (settings: WorkerSettings) => Promise<T>,
): Promise<T> {
  return withTemporaryFolder(async (folder) => {
    signal.throwIfAborted();
    const store = await startObjectStore({
      dataDir: path.join(folder, 'object-store'),
      logFile: path.join(folder, 'object-store.log'),
      supervise: true,
      onEvent: say,
    });
    try {
      return await use(
        readSettings({
          ...process.env,
          GRADUS_BLOB_CACHE: path.join(folder, 'blob-cache'),
          GRADUS_S3_URL: `http://${store.address}`,
          GRADUS_S3_ACCESS_KEY: store.accessKey,
          GRADUS_S3_SECRET_KEY: store.secretKey,
        }),
      );
    } finally {
      await store.stop();
    }
  });
}
