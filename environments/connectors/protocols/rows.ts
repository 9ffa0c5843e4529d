import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { GradusError, messageOf } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import { isDeeperThan } from '../../../core/json/levels.ts';
import type { Split, TaskRef } from '../../../core/refs.ts';
import { MOST_LEVELS } from './server.ts';

// Tasks that are rows of a JSONL file, as Hugging Face's datasets and NeMo Gym have them. The file's SHA-256 is the
// version of the tasks: another file is another environment, never the same one with other tasks.

export type Row = Record<string, Json>;

/** Where each row belongs, and how hard it is. */
export interface RowChoices {
  /** Relative to the working directory. */
  path: string;
  /** What the file's SHA-256 must be, in hex; any unless given. */
  sha256?: string;
  split?: SplitBy;
  /** The column with a row's level, an integer; every row is of level 1 unless given. */
  level?: string;
}

/**
 * `column`: the values that name each split; rows with any other value are left out. `hash`: a stable share of the rows by
 * the text of a column (what the policy is asked, unless given), so that rows with the same text are of the same split, in
 * whatever order they come; shares of the whole, training has the rest.
 */
export type SplitBy =
  | { column: string; train: readonly string[]; heldout: readonly string[]; test: readonly string[] }
  | { hash?: string; heldout: number; test: number };

const DEFAULT_SPLIT: SplitBy = { heldout: 0.1, test: 0.1 };

const SPLITS: readonly Split[] = ['train', 'heldout', 'test'];

/** The rows of a file by split and level, in the order of the file. */
export class DatasetRows {
  /** `sha256:` and the digest of the file. */
  readonly version: string;
  readonly levels: readonly number[];
  private readonly path: string;
  private readonly bytes: Buffer;
  private readonly changedAt: number;
  private readonly places: ReadonlyMap<string, readonly Place[]>;

  /**
   * Reads the whole file, once. `textOf` is what a task comes down to: no text may be in two splits.
   * Throws GradusError('environment', 'rows') for a file, a row or a split that cannot be used.
   */
  constructor({ path, sha256, split = DEFAULT_SPLIT, level }: RowChoices, textOf: (row: Row) => string) {
    this.path = path;
    try {
      const stats = statSync(path);
      // A pipe or a device may have no end.
      if (!stats.isFile()) throw new Error('it is no regular file');
      this.changedAt = stats.mtimeMs;
      this.bytes = readFileSync(path);
    } catch (cause) {
      throw wrong(path, `cannot be read (${messageOf(cause)})`, cause);
    }
    const digest = createHash('sha256').update(this.bytes).digest('hex');
    if (sha256 !== undefined && sha256.toLowerCase() !== digest) {
      throw wrong(
        path,
        `has the SHA-256 ${digest}, and the environment wants ${sha256}: take the file that it was made for`,
      );
    }
    this.version = `sha256:${digest}`;
    const places = new Map<string, Place[]>();
    const seen = new Map<string, { split: Split; line: number }>();
    const levels = new Set<number>();
    for (const place of placesIn(this.bytes)) {
      const row = this.parse(place);
      const text = digestOf(textOf(row));
      const part = splitOf(row, text, split, place.line, path);
      if (part === null) continue;
      const twin = seen.get(text);
      if (twin !== undefined && twin.split !== part) {
        throw wrong(
          path,
          `has the same task in line ${twin.line} (${twin.split}) and line ${place.line} (${part}): leave one out, or split by hash`,
        );
      }
      seen.set(text, { split: part, line: place.line });
      const at = level === undefined ? 1 : levelOf(row, level, place.line, path);
      levels.add(at);
      const key = `${part} ${at}`;
      const those = places.get(key);
      if (those === undefined) places.set(key, [place]);
      else those.push(place);
    }
    this.places = places;
    this.levels = [...levels].toSorted((a, b) => a - b);
    if (this.count('train') === 0) throw wrong(path, 'has no row of the split train: look at `split`');
  }

  count(split: Split, level?: number): number {
    const levels = level === undefined ? this.levels : [level];
    return levels.reduce((sum, one) => sum + (this.places.get(`${split} ${one}`)?.length ?? 0), 0);
  }

  /** Throws GradusError('environment', 'rows') where there is none, or the file is not what it was. */
  row({ split, level, index }: TaskRef): Row {
    const place = this.places.get(`${split} ${level}`)?.[index];
    if (place === undefined) {
      throw wrong(
        this.path,
        `has ${this.count(split, level)} tasks of split ${split} at level ${level}: there is no task ${index}`,
      );
    }
    this.assertUnchanged();
    return this.parse(place);
  }

  /** What runs is what was read; but a file that changes under a run is told of before its workers start again. */
  private assertUnchanged(): void {
    let changedAt: number | undefined;
    try {
      changedAt = statSync(this.path).mtimeMs;
    } catch (cause) {
      throw wrong(this.path, `is gone (${messageOf(cause)}): put it back`, cause);
    }
    if (changedAt === this.changedAt) return;
    const digest = `sha256:${createHash('sha256').update(readFileSync(this.path)).digest('hex')}`;
    if (digest === this.version) return;
    throw wrong(
      this.path,
      `has changed since it was read (${this.version}, now ${digest}): its tasks are others. Put the file back, or begin another run`,
    );
  }

  private parse({ start, end, line }: Place): Row {
    const text = this.bytes.toString('utf8', start, end);
    if (isDeeperThan(MOST_LEVELS, text))
      throw wrong(this.path, `has JSON of more than ${MOST_LEVELS} levels in line ${line}`);
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (cause) {
      throw wrong(this.path, `is no JSON in line ${line} (${messageOf(cause)})`, cause);
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw wrong(this.path, `has no JSON object in line ${line}`);
    }
    return value as Row;
  }
}

/** Where a row stands in the file, in bytes; lines are counted from 1. */
interface Place {
  start: number;
  end: number;
  line: number;
}

const NEW_LINE = 0x0a;

function* placesIn(bytes: Buffer): Generator<Place> {
  // A byte-order mark is no part of the first row.
  let start = bytes.subarray(0, 3).equals(Buffer.from([0xef, 0xbb, 0xbf])) ? 3 : 0;
  for (let line = 1; start < bytes.length; line++) {
    const found = bytes.indexOf(NEW_LINE, start);
    const end = found === -1 ? bytes.length : found;
    if (bytes.toString('utf8', start, end).trim() !== '') yield { start, end, line };
    start = end + 1;
  }
}

function splitOf(row: Row, text: string, by: SplitBy, line: number, path: string): Split | null {
  if ('column' in by) {
    const value = row[by.column];
    if (typeof value !== 'string') throw wrong(path, `has no text in column ${by.column} of line ${line}`);
    return SPLITS.find((split) => by[split].includes(value)) ?? null;
  }
  const digest = by.hash === undefined ? text : digestOf(textIn(row, by.hash, line, path));
  // 48 bits are a fraction that a double has exactly.
  const fraction = Number.parseInt(digest.slice(0, 12), 16) / 2 ** 48;
  if (fraction < by.heldout) return 'heldout';
  return fraction < by.heldout + by.test ? 'test' : 'train';
}

function levelOf(row: Row, column: string, line: number, path: string): number {
  const value = row[column];
  if (Number.isInteger(value)) return value as number;
  throw wrong(path, `has no integer in column ${column} of line ${line}`);
}

function textIn(row: Row, column: string, line: number, path: string): string {
  const value = row[column];
  if (value === undefined) throw wrong(path, `has no column ${column} in line ${line}`);
  return typeof value === 'string' ? value : JSON.stringify(value);
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

export const wrong = (path: string, what: string, cause?: unknown): GradusError =>
  new GradusError('environment', 'rows', `${path} ${what}`, { cause });
