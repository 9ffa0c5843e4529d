import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { deserialize, serialize } from 'node:v8';

/**
 * A file without a name that two processes hold open, for what is too large for the channel between them: a state of
 * 360 MB passes through it in a third of the time. It is gone when both have ended, however they ended.
 */
export function openUnnamedFile(): number {
  const folder = mkdtempSync(path.join(tmpdir(), 'gradus-learner-'));
  try {
    return openSync(path.join(folder, 'state'), 'w+');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Bytes written, from the beginning of the file. */
export function writeValue(file: number, value: unknown): number {
  const bytes = serialize(value);
  for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at, bytes.length - at, at);
  return bytes.length;
}

/** What was written as so many bytes. */
export function readValue(file: number, length: number): unknown {
  const bytes = Buffer.allocUnsafeSlow(length);
  for (let at = 0; at < length;) {
    const read = readSync(file, bytes, at, length - at, at);
    if (read === 0) throw new Error(`a value of ${length} bytes ends after ${at}`);
    at += read;
  }
  return deserialize(bytes);
}

export { closeSync as closeFile };
