import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

// Who imports what, computed from the sources and compared with what CONTRIBUTING.md and lint say.

const ROOT = path.resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');

/** Rooms within these folders are told apart. */
const HOUSES = new Set(['environments', 'test']);

function roomOf(file: string): string {
  const parts = file.split('/');
  if (parts.length === 1) return '.';
  return HOUSES.has(parts[0]!) && parts.length > 2 ? `${parts[0]}/${parts[1]}` : parts[0]!;
}

const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*(['"])(\.[^'"]+)\1/g;

/** By room, the rooms that it imports, by values or types, each with one file that does. */
function importsOfRooms(): Map<string, Map<string, string>> {
  const listed = [
    'ls-files',
    '--cached',
    '--others',
    '--exclude-standard',
    '*.ts',
    '*.tsx',
    '*.mts',
    '*.mjs',
  ];
  const files = new Set(execFileSync('git', listed, { cwd: ROOT, encoding: 'utf8' }).trim().split('\n'));
  const rooms = new Map<string, Map<string, string>>();
  for (const file of files) {
    const room = roomOf(file);
    const imports = rooms.get(room) ?? new Map<string, string>();
    rooms.set(room, imports);
    for (const [, , specifier] of read(file).matchAll(IMPORT)) {
      const target = path.posix.join(path.posix.dirname(file), specifier!);
      if (files.has(target) && roomOf(target) !== room) imports.set(roomOf(target), file);
    }
  }
  return rooms;
}

/** A circle of rooms, by the files that make it; undefined where there is none. */
function circleOf(rooms: Map<string, Map<string, string>>): string[] | undefined {
  const done = new Set<string>();
  const visit = (room: string, way: readonly string[]): string[] | undefined => {
    if (way.includes(room)) return [...way.slice(way.indexOf(room)), room];
    if (done.has(room)) return undefined;
    for (const next of rooms.get(room)?.keys() ?? []) {
      const found = visit(next, [...way, room]);
      if (found) return found;
    }
    done.add(room);
    return undefined;
  };
  for (const room of rooms.keys()) {
    const found = visit(room, []);
    if (found) return found.slice(1).map((to, i) => `${found[i]} → ${to}: ${rooms.get(found[i]!)!.get(to)}`);
  }
  return undefined;
}

const rooms = importsOfRooms();

test('a circle is found where there is one', () => {
  const round = new Map([
    ['a', new Map([['b', 'a/1.ts']])],
    ['b', new Map([['c', 'b/1.ts']])],
    ['c', new Map([['b', 'c/1.ts']])],
  ]);
  expect(circleOf(round)).toEqual(['b → c: b/1.ts', 'c → b: c/1.ts']);
});

test('no room is in a circle, by values or types', () => {
  expect(rooms.size).toBeGreaterThan(20);
  expect(circleOf(rooms)).toBeUndefined();
});

test('each room imports what CONTRIBUTING.md says, and nothing else', () => {
  const rows = [...read('CONTRIBUTING.md').matchAll(/^\| `([\w/]+)\/` +\| .* \| (.*?) +\|$/gm)];
  const stated = new Map(
    rows.map(([, room, imports]) => [room!, [...imports!.matchAll(/`([\w/]+)`/g)].map(([, name]) => name!)]),
  );
  const product = [...rooms.keys()].filter((room) => !/^(?:\.|bench|bin|examples|test\b.*)$/.test(room));
  expect([...stated.keys()].toSorted()).toEqual(product.toSorted());
  for (const room of product) {
    expect(stated.get(room)!.toSorted(), room).toEqual(
      [...rooms.get(room)!.keys()].filter((to) => to !== '.').toSorted(),
    );
  }
});

test('lint has a rule for each room', () => {
  const { overrides } = JSON.parse(read('.oxlintrc.json')) as {
    overrides: { files: string[]; rules: Record<string, unknown> }[];
  };
  const ruled = overrides.flatMap(({ files, rules }) => ('no-restricted-imports' in rules ? files : []));
  const product = [...rooms.keys()].filter((room) => !/^(?:\.|bench|bin|examples|test\b.*)$/.test(room));
  expect(product.filter((room) => !ruled.includes(`${room}/**`))).toEqual([]);
});
