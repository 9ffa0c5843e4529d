import type { EpisodeFacts } from '../../core/episode/facts.ts';

/** Facts of an episode of a step. */
export interface FactsInStep extends EpisodeFacts {
  /** The number of its group. */
  group: number;
}

const INTEGERS = [
  'group',
  'episode',
  'sample',
  'turns',
  'calls',
  'promptTokens',
  'sampledTokens',
  'observationTokens',
  'inheritedTokens',
] as const;
/** null is NaN. */
const REALS = ['level', 'index', 'reward', 'logprobSum', 'toolSeconds'] as const;
/** Each value is there once. */
const TEXTS = [
  'environment',
  'split',
  'weights',
  'status',
  'outcome',
  'reason',
  'boundary',
  'answer',
] as const;
/** 0 and 1; null is −1. */
const FLAGS = ['retried', 'success'] as const;
/** Numbers by name: those of row i stand from `offsets[i]` to `offsets[i + 1]`. */
const MAPS = ['scores', 'contributions', 'tools', 'errors'] as const;

export type IntegerColumn = (typeof INTEGERS)[number];
export type RealColumn = (typeof REALS)[number];
export type TextColumn = (typeof TEXTS)[number];
export type FlagColumn = (typeof FLAGS)[number];
export type MapColumn = (typeof MAPS)[number];

interface PackedTexts {
  values: (string | null)[];
  /** Of each row, its place in `values`. */
  codes: Uint32Array;
}

interface PackedMaps {
  names: string[];
  offsets: Uint32Array;
  codes: Uint32Array;
  /** NaN is null. */
  numbers: Float64Array;
}

/** What a pack says of itself before its columns. */
interface Head {
  rows: number;
  texts: (string | null)[][];
  maps: { names: string[]; entries: number }[];
}

/** Columns begin where numbers of eight bytes may stand. */
const ALIGNMENT = 8;

export const aligned = (bytes: number): number => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;

/** The facts of a step column by column, a tenth of what they take as objects. */
export function packFacts(rows: readonly FactsInStep[]): Uint8Array {
  const texts = TEXTS.map((name) => packTexts(rows.map((row) => row[name])));
  const maps = MAPS.map((name) => packMaps(rows.map((row) => row[name])));
  const head: Head = {
    rows: rows.length,
    texts: texts.map(({ values }) => values),
    maps: maps.map(({ names, codes }) => ({ names, entries: codes.length })),
  };
  return endToEnd([
    ...withLength(head),
    ...INTEGERS.map((name) => Int32Array.from(rows, (row) => row[name])),
    ...REALS.map((name) => Float64Array.from(rows, (row) => row[name] ?? Number.NaN)),
    ...texts.map(({ codes }) => codes),
    ...FLAGS.map((name) => Int8Array.from(rows, (row) => (row[name] === null ? -1 : Number(row[name])))),
    ...maps.flatMap(({ offsets, codes, numbers }) => [offsets, codes, numbers]),
  ]);
}

/** JSON with its length before it. */
export function withLength(head: object): Uint8Array[] {
  const json = new TextEncoder().encode(JSON.stringify(head));
  return [new Uint8Array(Uint32Array.of(json.length, 0).buffer), json];
}

/** Each begins at a multiple of eight. */
export function endToEnd(arrays: readonly ArrayBufferView[]): Uint8Array {
  const all = new Uint8Array(arrays.reduce((sum, { byteLength }) => sum + aligned(byteLength), 0));
  let at = 0;
  for (const { buffer, byteOffset, byteLength } of arrays) {
    all.set(new Uint8Array(buffer, byteOffset, byteLength), at);
    at += aligned(byteLength);
  }
  return all;
}

/** Reads what `endToEnd` has written, one after the other; nothing is copied where the bytes stand well. */
export class Reader {
  private readonly buffer: ArrayBufferLike;
  private at: number;

  constructor(bytes: Uint8Array) {
    const standing = bytes.byteOffset % ALIGNMENT === 0 ? bytes : bytes.slice();
    this.buffer = standing.buffer;
    this.at = standing.byteOffset;
  }

  take<T>(
    type: new (buffer: ArrayBufferLike, at: number, length: number) => T,
    length: number,
    width: number,
  ): T {
    const taken = new type(this.buffer, this.at, length);
    this.at += aligned(length * width);
    return taken;
  }

  bytes(length: number): Uint8Array {
    return this.take(Uint8Array, length, 1);
  }

  head(): unknown {
    const [length] = this.take(Uint32Array, 2, 4);
    return JSON.parse(new TextDecoder().decode(this.bytes(length!))) as unknown;
  }
}

export class PackedFacts {
  /** As they were packed. */
  readonly bytes: Uint8Array;
  readonly length: number;
  readonly integers: Record<IntegerColumn, Int32Array>;
  readonly reals: Record<RealColumn, Float64Array>;
  readonly texts: Record<TextColumn, PackedTexts>;
  readonly flags: Record<FlagColumn, Int8Array>;
  readonly maps: Record<MapColumn, PackedMaps>;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    const reader = new Reader(bytes);
    const { rows, texts, maps } = reader.head() as Head;
    this.length = rows;
    this.integers = columns(INTEGERS, () => reader.take(Int32Array, rows, 4));
    this.reals = columns(REALS, () => reader.take(Float64Array, rows, 8));
    this.texts = columns(TEXTS, (i) => ({ values: texts[i]!, codes: reader.take(Uint32Array, rows, 4) }));
    this.flags = columns(FLAGS, () => reader.take(Int8Array, rows, 1));
    this.maps = columns(MAPS, (i) => ({
      names: maps[i]!.names,
      offsets: reader.take(Uint32Array, rows + 1, 4),
      codes: reader.take(Uint32Array, maps[i]!.entries, 4),
      numbers: reader.take(Float64Array, maps[i]!.entries, 8),
    }));
  }

  text(name: TextColumn, row: number): string | null {
    const { values, codes } = this.texts[name];
    return values[codes[row]!]!;
  }

  /** The number that a row has under a name; undefined where it has none. */
  entry(name: MapColumn, row: number, of: string): number | undefined {
    const { names, offsets, codes, numbers } = this.maps[name];
    const code = names.indexOf(of);
    for (let at = offsets[row]!; at < offsets[row + 1]!; at++) if (codes[at] === code) return numbers[at];
    return undefined;
  }

  all(): FactsInStep[] {
    return Array.from({ length: this.length }, (_, row) => this.facts(row));
  }

  /** One row as it was. */
  facts(row: number): FactsInStep {
    const integer = (name: IntegerColumn): number => this.integers[name][row]!;
    const real = (name: RealColumn): number | null => orNull(this.reals[name][row]!);
    const text = (name: TextColumn): string | null => this.text(name, row);
    const flag = (name: FlagColumn): boolean | null => {
      const value = this.flags[name][row]!;
      return value < 0 ? null : value === 1;
    };
    const map = <T extends number | null>(name: MapColumn): Record<string, T> => {
      const { names, offsets, codes, numbers } = this.maps[name];
      const entries: [string, number | null][] = [];
      for (let at = offsets[row]!; at < offsets[row + 1]!; at++)
        entries.push([names[codes[at]!]!, orNull(numbers[at]!)]);
      return Object.fromEntries(entries) as Record<string, T>;
    };
    return {
      group: integer('group'),
      episode: integer('episode'),
      sample: integer('sample'),
      environment: text('environment')!,
      split: text('split')!,
      level: real('level')!,
      index: real('index')!,
      retried: flag('retried')!,
      weights: text('weights')!,
      status: text('status') as FactsInStep['status'],
      outcome: text('outcome') as FactsInStep['outcome'],
      reason: text('reason'),
      boundary: text('boundary'),
      success: flag('success'),
      reward: real('reward'),
      turns: integer('turns'),
      calls: integer('calls'),
      promptTokens: integer('promptTokens'),
      sampledTokens: integer('sampledTokens'),
      observationTokens: integer('observationTokens'),
      inheritedTokens: integer('inheritedTokens'),
      logprobSum: real('logprobSum')!,
      answer: text('answer'),
      scores: map('scores'),
      contributions: map('contributions'),
      tools: map('tools'),
      errors: map('errors'),
      toolSeconds: real('toolSeconds')!,
    };
  }
}

const orNull = (value: number): number | null => (Number.isNaN(value) ? null : value);

const columns = <Name extends string, T>(names: readonly Name[], make: (i: number) => T): Record<Name, T> =>
  Object.fromEntries(names.map((name, i) => [name, make(i)])) as Record<Name, T>;

/** Gives every value a number, in the order in which they come first. */
class Dictionary<T> {
  readonly values: T[] = [];
  private readonly numbers = new Map<T, number>();

  numberOf(value: T): number {
    const known = this.numbers.get(value);
    if (known !== undefined) return known;
    this.numbers.set(value, this.values.length);
    return this.values.push(value) - 1;
  }
}

function packTexts(rows: readonly (string | null)[]): PackedTexts {
  const dictionary = new Dictionary<string | null>();
  return { codes: Uint32Array.from(rows, (value) => dictionary.numberOf(value)), values: dictionary.values };
}

function packMaps(rows: readonly Record<string, number | null>[]): PackedMaps {
  const dictionary = new Dictionary<string>();
  const offsets = [0];
  const codes: number[] = [];
  const numbers: number[] = [];
  for (const row of rows) {
    for (const [name, value] of Object.entries(row)) {
      codes.push(dictionary.numberOf(name));
      numbers.push(value ?? Number.NaN);
    }
    offsets.push(codes.length);
  }
  return {
    names: dictionary.values,
    offsets: Uint32Array.from(offsets),
    codes: Uint32Array.from(codes),
    numbers: Float64Array.from(numbers),
  };
}
