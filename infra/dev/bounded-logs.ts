import { appendFile, open, readdir, rename, rm, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { messageOf } from '../../core/errors.ts';

// Servers and workers append to their logs by descriptors that they have from whoever started them, so that a log cannot be
// put aside by its name: its end is copied to `NAME.log.old`, and it is cut to nothing, as `copytruncate` of logrotate does.

/** How long a log may get, bytes; as much again is in the older one. */
export const LOG_LIMIT_BYTES = 32 * 2 ** 20;
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
  let said = '';
  const look = (): Promise<void> =>
    cutLongLogs(folder, limitBytes).catch((error: unknown) => {
      // A disk that is full stays so for longer than a second.
      if (messageOf(error) !== said) onEvent?.(`logs in ${folder} could not be cut: ${messageOf(error)}`);
      said = messageOf(error);
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

export async function cutLongLogs(folder: string, limitBytes: number = LOG_LIMIT_BYTES): Promise<void> {
  for (const name of await readdir(folder)) {
    if (name.endsWith('.log')) await cutIfLong(path.join(folder, name), limitBytes);
  }
}

async function cutIfLong(file: string, limitBytes: number): Promise<void> {
  const log = await open(file);
  let size: number;
  try {
    ({ size } = await log.stat());
    if (size <= limitBytes) return;
    // Of what came all at once only the end is kept.
    const end = Buffer.alloc(Math.min(size, limitBytes));
    const { bytesRead } = await log.read(end, 0, end.length, size - end.length);
    await putAside(`${file}.old`, end.subarray(0, bytesRead));
  } finally {
    await log.close();
  }
  await truncate(file);
  const old = path.basename(`${file}.old`);
  const lost = size - Math.min(size, limitBytes);
  await appendFile(
    file,
    `--- cut at ${size} bytes: the last ${size - lost} are in ${old}${lost > 0 ? `, ${lost} are lost` : ''}\n`,
  );
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
