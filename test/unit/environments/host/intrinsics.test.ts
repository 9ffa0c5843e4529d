import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { Socket } from 'node:net';
import { afterAll, describe, expect, test } from 'vitest';
import { rememberIntrinsics } from '../../../../environments/host/intrinsics.ts';

// What is changed here is put back before anything else runs: between the two is nothing but a look.

type Undo = () => void;

function define(object: object, key: PropertyKey, change: PropertyDescriptor): Undo {
  const before = Object.getOwnPropertyDescriptor(object, key);
  Object.defineProperty(object, key, { configurable: true, ...change });
  return () => {
    if (before) Object.defineProperty(object, key, before);
    else Reflect.deleteProperty(object, key);
  };
}

const value = (object: object, key: PropertyKey, put: unknown): Undo =>
  define(object, key, { value: put, writable: true, enumerable: true });
const nothing = (): undefined => undefined;
const { map } = Array.prototype;
const folder = process.cwd();
afterAll(() => process.chdir(folder));

const atOnce: [string, () => Undo][] = [
  ['Object.prototype.done', () => value(Object.prototype, 'done', true)],
  [
    'Array.prototype.length',
    () => {
      const undo = value(Array.prototype, '0', 'what every list has');
      return () => {
        undo();
        (Array.prototype as unknown[]).length = 0;
      };
    },
  ],
  ['Array.prototype.Symbol(Symbol.iterator)', () => value(Array.prototype, Symbol.iterator, [].keys)],
  ['Array.Symbol(Symbol.species)', () => define(Array, Symbol.species, { get: () => Map })],
  ['Map.prototype.size', () => define(Map.prototype, 'size', { get: () => 7 })],
  ['Object.prototype.__proto__', () => define(Object.prototype, '__proto__', { set: nothing })],
  ['JSON.stringify', () => value(JSON, 'stringify', () => '"5"')],
  ['Math.random', () => value(Math, 'random', () => 0.5)],
  ['Date.now', () => value(Date, 'now', () => 0)],
  ['Date', () => value(globalThis, 'Date', class extends Date {})],
  ['Performance.prototype.now', () => value(Object.getPrototypeOf(performance) as object, 'now', () => 0)],
  ['fetch', () => value(globalThis, 'fetch', nothing)],
  ['setTimeout', () => value(globalThis, 'setTimeout', nothing)],
  ['console.log', () => value(console, 'log', nothing)],
  ['process.exit', () => value(process, 'exit', nothing)],
  ['process.nextTick', () => value(process, 'nextTick', nothing)],
  ['EventEmitter.prototype.emit', () => value(EventEmitter.prototype, 'emit', () => false)],
  ['Socket.prototype.write', () => value(Socket.prototype, 'write', () => true)],
  ['AsyncLocalStorage.prototype.getStore', () => value(AsyncLocalStorage.prototype, 'getStore', () => 1)],
];

const nowAndThen: [string, () => Undo][] = [
  ['Map.groupsBy', () => value(Map, 'groupsBy', nothing)],
  ['Array.prototype.map', () => define(Array.prototype, 'map', { get: () => map })],
  ['Array.prototype.map', () => define(Array.prototype, 'map', { value: map, writable: false })],
];

describe('what a call changes is named', () => {
  const intrinsics = rememberIntrinsics();
  /** After the change, at each kind of look. */
  function found(change: () => Undo): (string | null)[] {
    const undo = change();
    const first = intrinsics.changed();
    const everywhere = intrinsics.changedAnywhere();
    undo();
    return [first, everywhere];
  }

  test.each(atOnce)('before an answer leaves: %s', (name, change) => {
    expect(found(change)).toEqual([name, name]);
    expect(intrinsics.changedAnywhere()).toBeNull();
  });

  test.each(nowAndThen)('some time later: %s', (name, change) => {
    expect(found(change)[1]).toBe(name);
    expect(intrinsics.changedAnywhere()).toBeNull();
  });

  test('also where as much was taken away as was added', () => {
    const change = (): Undo => {
      const proto = Object.getOwnPropertyDescriptor(Object.prototype, '__proto__')!;
      Reflect.deleteProperty(Object.prototype, '__proto__');
      const undo = value(Object.prototype, 'done', true);
      return () => {
        undo();
        Reflect.defineProperty(Object.prototype, '__proto__', proto);
      };
    };
    expect(found(change)[0]).toBe('Object.prototype.done');
  });

  test('the working directory', () => {
    const there = rememberIntrinsics();
    process.chdir('/');
    expect(there.changed()).toBe('the working directory');
    process.chdir(folder);
    expect(there.changed()).toBeNull();
  });

  test('a variable that there was; a new one is nobody else’s matter', () => {
    process.env['GRADUS_TEST_HOLD'] = 'before';
    const there = rememberIntrinsics();
    process.env['GRADUS_TEST_NEW'] = 'new';
    expect(there.changedAnywhere()).toBeNull();
    process.env['GRADUS_TEST_HOLD'] = 'after';
    expect(there.changedAnywhere()).toBe('process.env.GRADUS_TEST_HOLD');
    delete process.env['GRADUS_TEST_HOLD'];
    expect(there.changedAnywhere()).toBe('process.env.GRADUS_TEST_HOLD');
    delete process.env['GRADUS_TEST_NEW'];
  });
});

test('what Node loads when it is first used is no change', async () => {
  // A host has it from the beginning: it replaces process.chdir.
  await import('node:worker_threads');
  const there = rememberIntrinsics();
  const names = ['cluster', 'crypto', 'dgram', 'dns/promises', 'fs/promises', 'http2', 'https', 'inspector'];
  // Not repl, which loads domain: that replaces EventEmitter.prototype.emit for everybody.
  const more = ['perf_hooks', 'readline/promises', 'sqlite', 'stream/web', 'tls', 'vm'];
  for (const name of [...names, ...more])
    await import(/* @vite-ignore */ `node:${name}`).catch(() => undefined);
  await fetch('data:text/plain,ok').then((response) => response.text());
  await crypto.subtle.digest('SHA-256', new Uint8Array(1));
  new Blob(['1']).stream();
  expect([process.stdin.isTTY, process.stdout.columns]).toHaveLength(2);
  expect(there.changedAnywhere()).toBeNull();
});
