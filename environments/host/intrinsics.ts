import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { Socket } from 'node:net';
import { Duplex, Readable, Stream, Writable } from 'node:stream';

// What the language and Node give to everybody in a process. Code that changes it while it is called (adds to
// Object.prototype, replaces Promise.prototype.then) changes what everybody else's code there does, ours too. It cannot be
// frozen beforehand: whatever assigns `toString` or `name` to an object of its own would throw. So it is compared.

// Taken before users' code is there: what they replace is not asked whether it was replaced.
const { getOwnPropertyDescriptor, getPrototypeOf, isExtensible, keys: keysOf } = Object;
const { ownKeys } = Reflect;
const string = String;
const nodeProcess = process;
const cwd = process.cwd.bind(process);

const NAMES = [
  'Object Function Array String Number Boolean Symbol BigInt Promise Map Set WeakMap WeakSet WeakRef RegExp Date Proxy',
  'Error TypeError RangeError SyntaxError ReferenceError EvalError URIError AggregateError ArrayBuffer DataView',
  'Uint8Array Int32Array Float32Array Float64Array BigInt64Array FinalizationRegistry JSON Math Reflect Intl Atomics',
  'Uint8ClampedArray Int8Array Int16Array Uint16Array Uint32Array BigUint64Array SharedArrayBuffer Iterator Performance',
  'AbortController AbortSignal EventTarget Event Buffer URL URLSearchParams TextEncoder TextDecoder console',
]
  .join(' ')
  .split(' ');

/** Names of the global object that a host or other people's code calls. */
const GLOBALS = [
  ...NAMES,
  ...'setTimeout setInterval setImmediate clearTimeout clearInterval clearImmediate queueMicrotask'.split(
    ' ',
  ),
  ...'structuredClone fetch process parseInt parseFloat isNaN isFinite encodeURIComponent decodeURIComponent'.split(
    ' ',
  ),
];

/** They are written by everybody who looks at a stack, and read by nobody else. */
const STACKS: readonly PropertyKey[] = ['stackTraceLimit', 'prepareStackTrace'];

/** What our way to the worker, and everybody's streams, stand on. */
const OF_NODE: Readonly<Record<string, object>> = {
  'EventEmitter.prototype': EventEmitter.prototype,
  'Stream.prototype': Stream.prototype,
  'Readable.prototype': Readable.prototype,
  'Writable.prototype': Writable.prototype,
  'Duplex.prototype': Duplex.prototype,
  'Socket.prototype': Socket.prototype,
  'AsyncLocalStorage.prototype': AsyncLocalStorage.prototype,
};

interface Shared {
  object: object;
  name: string;
  prototype: object | null;
  extensible: boolean;
  keys: readonly PropertyKey[];
  accessors: readonly { key: PropertyKey; get?: unknown; set?: unknown }[];
  values: readonly { key: PropertyKey; writable: boolean; configurable: boolean }[];
}

/** What a name that an object does not have is looked up in. */
const LOOKED_UP_IN = [
  'Object.prototype',
  'Function.prototype',
  'Array.prototype',
  'String.prototype',
  'Number.prototype',
  'Boolean.prototype',
  'Promise.prototype',
  'Error.prototype',
  ...Object.keys(OF_NODE),
];

export interface Intrinsics {
  /**
   * What has been changed since, such as `Object.prototype.done`, or null: methods, functions and getters that were
   * replaced or removed, what was added to where everybody's objects look, and the working directory. It takes some 30
   * microseconds.
   */
  changed(): string | null;
  /**
   * As `changed`, and looks for additions anywhere, for what was frozen or made a getter, and for environment variables
   * that have another value. It takes ten times as long.
   */
  changedAnywhere(): string | null;
}

/** All that is shared in a process, as it is now. Comparing calls nothing that may have been changed. */
export function rememberIntrinsics(): Intrinsics {
  const all = [...shared()].map(([object, name]) => sharedAs(object, name));
  const open = all.filter(({ object }) => object !== globalThis && object !== nodeProcess);
  const looked = open.filter(({ name }) => LOOKED_UP_IN.includes(name));
  const replaced = comparison(all);
  const folder = cwd();
  const variables = { ...nodeProcess.env };
  const changed = (): string | null =>
    replaced() ?? extended(looked) ?? redirected(open) ?? (cwd() === folder ? null : 'the working directory');
  return {
    changed,
    changedAnywhere: () => changed() ?? extended(open) ?? restricted(open) ?? otherwiseSet(variables),
  };
}

function sharedAs(object: object, name: string): Shared {
  const keys =
    object === globalThis
      ? GLOBALS.filter((key) => key in globalThis)
      : object === nodeProcess
        ? ownFunctions(object)
        : ownKeys(object);
  const descriptors = keys.flatMap((key) => {
    const descriptor = getOwnPropertyDescriptor(object, key);
    return descriptor && !STACKS.includes(key) ? [{ key, ...descriptor }] : [];
  });
  return {
    object,
    name,
    prototype: getPrototypeOf(object) as object | null,
    extensible: isExtensible(object),
    keys,
    accessors: descriptors.filter((one) => 'get' in one || 'set' in one),
    values: descriptors.flatMap(({ key, writable, configurable }) =>
      writable === undefined ? [] : [{ key, writable, configurable: configurable === true }],
    ),
  };
}

/** The rest of what `process` has changes by itself. */
const ownFunctions = (object: object): PropertyKey[] =>
  ownKeys(object).filter((key) => typeof getOwnPropertyDescriptor(object, key)?.value === 'function');

/**
 * Says what was replaced or removed. Its code has a line for each of some twelve hundred properties, because V8 looks one
 * up that is named in the code in a few nanoseconds, and one that is named by a variable in eighty.
 */
function comparison(all: readonly Shared[]): () => string | null {
  const [objects, values, symbols]: [object[], unknown[], symbol[]] = [[], [], []];
  const lines: string[] = [];
  for (const { object, name, keys } of all) {
    const at = objects.push(object) - 1;
    for (const key of keys) {
      const descriptor = getOwnPropertyDescriptor(object, key)!;
      // NaN is equal to nothing, and cannot be written to.
      if (STACKS.includes(key) || !('value' in descriptor) || Number.isNaN(descriptor.value)) continue;
      const written = typeof key === 'symbol' ? `s${symbols.push(key) - 1}` : JSON.stringify(key);
      const value = `v${values.push(descriptor.value) - 1}`;
      lines.push(`if (o${at}[${written}] !== ${value}) return ${JSON.stringify(nameOf(name, key))};`);
    }
  }
  const named = (letter: string, list: readonly unknown[]): string =>
    `const [${list.map((_, i) => `${letter}${i}`).join(', ')}] = ${letter};`;
  // Made of names that V8 and Node give.
  // oxlint-disable-next-line typescript/no-implied-eval
  const make = new Function(
    'o, v, s',
    `${named('o', objects)} ${named('v', values)} ${named('s', symbols)}
     return () => { ${lines.join('\n')} return null; };`,
  ) as (...given: unknown[]) => () => string | null;
  return make(objects, values, symbols);
}

function extended(open: readonly Shared[]): string | null {
  for (let i = 0; i < open.length; i++) {
    const { object, keys, name, prototype } = open[i]!;
    if (getPrototypeOf(object) !== prototype) return `the prototype of ${name}`;
    const now = ownKeys(object);
    for (let n = 0; n < now.length; n++) {
      // They stand in the order in which they were added, but for whole numbers, which come first.
      if (now[n] === keys[n]) continue;
      let had = false;
      for (let k = 0; k < keys.length && !had; k++) had = now[n] === keys[k];
      if (!had) return nameOf(name, now[n]!);
    }
  }
  return null;
}

/** By a getter or setter that was put in place of another one. */
function redirected(open: readonly Shared[]): string | null {
  for (let i = 0; i < open.length; i++) {
    const { object, name, accessors } = open[i]!;
    for (let k = 0; k < accessors.length; k++) {
      const { key, get, set } = accessors[k]!;
      const now = getOwnPropertyDescriptor(object, key);
      if (now?.get !== get || now?.set !== set) return nameOf(name, key);
    }
  }
  return null;
}

/** What was frozen, so that others' code throws where it writes, and values that may be another one at the next look. */
function restricted(open: readonly Shared[]): string | null {
  for (let i = 0; i < open.length; i++) {
    const { object, name, extensible, values } = open[i]!;
    if (isExtensible(object) !== extensible) return `${name}, which was frozen`;
    for (let k = 0; k < values.length; k++) {
      const { key, writable, configurable } = values[k]!;
      const now = getOwnPropertyDescriptor(object, key);
      if (now?.writable !== writable || now.configurable !== configurable) return nameOf(name, key);
    }
  }
  return null;
}

/** New variables are nobody else's matter; those that there were others may have read already, or are about to. */
function otherwiseSet(variables: NodeJS.ProcessEnv): string | null {
  const names = keysOf(variables);
  for (let i = 0; i < names.length; i++) {
    if (nodeProcess.env[names[i]!] !== variables[names[i]!]) return `process.env.${names[i]!}`;
  }
  return null;
}

function nameOf(object: string, key: PropertyKey): string {
  const text = string(key);
  return object === '' ? text : `${object}.${text}`;
}

/** Objects that everybody has, by their names. */
function shared(): Map<object, string> {
  const all = new Map<object, string>([[globalThis, '']]);
  const isObject = (value: unknown): value is object =>
    (typeof value === 'object' && value !== null) || typeof value === 'function';
  const add = (value: unknown, name: string): void => {
    if (!isObject(value) || all.has(value)) return;
    all.set(value, name);
  };
  for (const name of NAMES) {
    const value = (globalThis as Record<string, unknown>)[name];
    add(value, name);
    if (typeof value === 'function') add(value.prototype, `${name}.prototype`);
  }
  for (const [name, object] of Object.entries(OF_NODE)) add(object, name);
  add(nodeProcess, 'process');
  const typedArray = getPrototypeOf(Uint8Array) as { prototype: object };
  add(typedArray, 'TypedArray');
  add(typedArray.prototype, 'TypedArray.prototype');
  const iterators = {
    'the prototype of iterators of arrays': [][Symbol.iterator](),
    'the prototype of iterators of maps': new Map()[Symbol.iterator](),
    'the prototype of iterators of sets': new Set()[Symbol.iterator](),
    'the prototype of iterators of strings': ''[Symbol.iterator](),
    'the prototype of iterators of matches': ''.matchAll(/x/gu),
    'the prototype of generators': (function* () {})(),
    'the prototype of async generators': (async function* () {})(),
  };
  for (const [name, one] of Object.entries(iterators)) {
    for (let at = getPrototypeOf(one) as object; at !== Object.prototype; at = getPrototypeOf(at) as object)
      add(at, name);
  }
  return all;
}
