import { appendFile, open, readdir, rename, rm, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { messageOf } from '../../core/errors.ts';

// Servers and workers append to their logs by descriptors that they have from whoever started them, so that a log cannot be
// put aside by its name: its end is copied to `NAME.log.old`, and it is cut to nothing, as `copytruncate` of logrotate does. What is written between
// the last look and the cut is lost without being counted.

/** How long a log may get, bytes; as much again is in the older one. */
const LOG_LIMIT_BYTES = 32 * 2 ** 20;
const LOOK_EVERY_MS = 1000;

export interface BoundedLogs {
  /** Looks once more and no more after that. */
  stop(): Promise<void>;
}

/** Keeps every `*.log` in a folder near the limit for as long as this process runs. `onEvent` hears what could not be cut. */
export function boundLogs(
  folder: string,
  { limitBytes = LOG_LIMIT_BYTES, onEvent }: { limitBytes?: number; onEvent?: (text: string) => void } = {},
): BoundedLogs {
  let looking = Promise.resolve();
  let text = '';
  const look = (): Promise<void> =>
    cutLongLogs(folder, limitBytes).catch((error: unknown) => {
      // A disk that is full stays so for longer than a second.
      if (messageOf(error) !== text) onEvent?.(`logs in ${folder} could not be cut: ${messageOf(error)}`);
      text = messageOf(error);
    });
  const timer = setInterval(() => {
    looking = looking.then(look);
  }, LOOK_EVERY_MS);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      await looking.then(look);
    },
  };
}

/** All that can be cut, whatever becomes of the others. Throws the first error. */
export async function cutLongLogs(folder: string, limitBytes: number = LOG_LIMIT_BYTES): Promise<void> {
  const problems: unknown[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    // A pipe would be waited for.
    if (!entry.isFile() || !entry.name.endsWith('.log')) continue;
    await cutIfLong(path.join(folder, entry.name), limitBytes).catch((error: unknown) =>
      problems.push(error),
    );
  }
  if (problems.length > 0) throw problems[0];
}

async function cutIfLong(file: string, limitBytes: number): Promise<void> {
  const log = await open(file);
  let size: number;
  let kept = 0;
  let problem: Error | undefined;
  try {
    ({ size } = await log.stat());
    if (size <= limitBytes) return;
    // Of what came all at once only the end is kept.
    const end = Buffer.alloc(Math.min(size, limitBytes));
    const { bytesRead } = await log.read(end, 0, end.length, size - end.length);
    // A disk that the log has filled has no room for a second one: then the log is cut all the same.
    await putAside(`${file}.old`, end.subarray(0, bytesRead)).then(
      () => (kept = bytesRead),
      (error: Error) => (problem = error),
    );
    // What was written meanwhile is cut, too.
    ({ size } = await log.stat());
  } finally {
    await log.close();
  }
  await truncate(file);
  const parts = [
    ...(kept > 0 ? [`${kept} are in ${path.basename(file)}.old`] : []),
    ...(size > kept ? [`${size - kept} are lost`] : []),
  ];
  await appendFile(file, `--- cut at ${size} bytes: ${parts.join(', ')}\n`);
  if (problem) throw problem;
}

/** Written beside and renamed, so that the older one is never half of one. Logs are their owner's alone. */
async function putAside(file: string, end: Uint8Array): Promise<void> {
  const part = `${file}.part`;
  try {
    await writeFile(part, end, { mode: 0o600 });
    await rename(part, file);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}
