import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { boundLogs, cutLongLogs } from '../../../infra/dev/bounded-logs.ts';

const LIMIT = 100_000;
let folder: string;
let file: string;
let log: number;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'gradus-logs-'));
  file = path.join(folder, 'workers.log');
  log = openSync(file, 'a', 0o600);
});
afterEach(() => {
  closeSync(log);
  rmSync(folder, { recursive: true });
});

const line = (n: number): string => `line ${n} ${'x'.repeat(80)}\n`;

test('a log that others append to without end stays near its limit, and its newest lines are there', async () => {
  for (let n = 0; n < 20_000; n++) {
    writeSync(log, line(n));
    if (n % 1000 === 0) await cutLongLogs(folder, LIMIT);
  }
  await cutLongLogs(folder, LIMIT);
  const kept = readdirSync(folder).map((name) => statSync(path.join(folder, name)).size);
  expect(kept.length).toBe(2);
  expect(Math.max(...kept)).toBeLessThanOrEqual(LIMIT);
  const text = readFileSync(`${file}.old`, 'utf8') + readFileSync(file, 'utf8');
  expect(text).toContain(line(19_999));
  expect(text).toMatch(/^--- cut at \d+ bytes: 100000 are in workers\.log\.old, \d+ are lost$/mu);
});

test('what is written after the cut is at the beginning of the file, and no hole is before it', async () => {
  writeSync(log, 'y'.repeat(2 * LIMIT));
  await cutLongLogs(folder, LIMIT);
  writeSync(log, 'after\n');
  expect(readFileSync(file, 'utf8')).toMatch(/^--- cut at 200000 bytes: .*\nafter\n$/u);
  expect(statSync(`${file}.old`).mode & 0o077).toBe(0);
});

test('a log that cannot be put aside is cut all the same, and so are the others', async () => {
  // As on a disk that is full, a second log cannot be written.
  mkdirSync(`${file}.old/in-the-way`, { recursive: true });
  mkdirSync(path.join(folder, 'a-folder.log'));
  const other = path.join(folder, 'zzz.log');
  writeSync(log, 'y'.repeat(2 * LIMIT));
  writeFileSync(other, 'z'.repeat(2 * LIMIT));
  await expect(cutLongLogs(folder, LIMIT)).rejects.toThrow(/EISDIR|ENOTEMPTY|EEXIST/u);
  expect(readFileSync(file, 'utf8').slice(0, 100)).toBe('--- cut at 200000 bytes: 200000 are lost\n');
  expect(readFileSync(other, 'utf8')).toMatch(/^--- cut at 200000 bytes: 100000 are in zzz\.log\.old/u);
  expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([]);
});

test('logs are looked at for as long as their servers run, and once more when they have ended', async () => {
  const logs = boundLogs(folder, { limitBytes: LIMIT });
  writeSync(log, 'y'.repeat(3 * LIMIT));
  await expect.poll(() => statSync(file).size).toBeLessThan(LIMIT);
  writeSync(log, 'z'.repeat(3 * LIMIT));
  await logs.stop();
  expect(statSync(file).size).toBeLessThan(LIMIT);
});

test('that logs could not be cut is said once', async () => {
  const lines: string[] = [];
  const logs = boundLogs(path.join(folder, 'not-there'), { onEvent: (text) => lines.push(text) });
  await expect.poll(() => lines.length).toBe(1);
  await logs.stop();
  expect(lines).toEqual([expect.stringContaining('could not be cut: ENOENT')]);
});
