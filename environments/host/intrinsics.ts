// What the language and Node give to everybody in a process. Code that changes it while it is called (adds to
// Object.prototype, replaces Promise.prototype.then) changes what everybody else's code there does, ours too. It cannot be
// frozen beforehand: whatever assigns `toString` or `name` to an object of its own would throw. So it is compared.

// Taken before users' code is there: what they replace is not asked whether it was replaced.
const { getOwnPropertyDescriptor, getPrototypeOf } = Object;
const { ownKeys } = Reflect;
const string = String;

const NAMES = [
  'Object Function Array String Number Boolean Symbol BigInt Promise Map Set WeakMap WeakSet WeakRef RegExp Date Proxy',
  'Error TypeError RangeError SyntaxError ReferenceError EvalError URIError AggregateError ArrayBuffer DataView',
  'Uint8Array Int32Array Float32Array Float64Array BigInt64Array FinalizationRegistry JSON Math Reflect Intl Atomics',
  'AbortController AbortSignal EventTarget Buffer URL TextEncoder TextDecoder',
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

interface Shared {
  object: object;
  name: string;
  prototype: object | null;
  keys: readonly PropertyKey[];
  getters: readonly { key: PropertyKey; get: unknown }[];
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
];

export interface Intrinsics {
  /**
   * What has been changed since, such as `Object.prototype.done`, or null: methods and functions that were replaced or
   * removed, and what was added to where everybody's objects look. It takes some 30 microseconds.
   */
  changed(): string | null;
  /** As `changed`, and looks for replaced getters, and for additions anywhere. It takes ten times as long. */
  changedAnywhere(): string | null;
}

/** All that is shared in a process, as it is now. Comparing calls nothing that may have been changed. */
export function rememberIntrinsics(): Intrinsics {
  const all = [...shared()].map(([object, name]) => sharedAs(object, name));
  const open = all.filter(({ object }) => object !== globalThis);
  const looked = open.filter(({ name }) => LOOKED_UP_IN.includes(name));
  const replaced = comparison(all);
  return {
    changed: () => replaced() ?? extended(looked),
    changedAnywhere: () => replaced() ?? extended(open) ?? redirected(open),
  };
}

function sharedAs(object: object, name: string): Shared {
  const keys = object === globalThis ? GLOBALS.filter((key) => key in globalThis) : ownKeys(object);
  const getters = keys.flatMap((key) => {
    const { get } = getOwnPropertyDescriptor(object, key) as { get?: unknown };
    return get === undefined ? [] : [{ key, get }];
  });
  return { object, name, prototype: getPrototypeOf(object) as object | null, keys, getters };
}

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
    if (now.length <= keys.length) continue;
    for (let n = 0; n < now.length; n++) {
      let had = false;
      for (let k = 0; k < keys.length; k++) had ||= keys[k] === now[n];
      if (!had) return nameOf(name, now[n]!);
    }
  }
  return null;
}

/** By a getter that was put in place of another one. */
function redirected(open: readonly Shared[]): string | null {
  for (let i = 0; i < open.length; i++) {
    const { object, name, getters } = open[i]!;
    for (let k = 0; k < getters.length; k++) {
      const { key, get } = getters[k]!;
      if (getOwnPropertyDescriptor(object, key)?.get !== get) return nameOf(name, key);
    }
  }
  return null;
}

function nameOf(object: string, key: PropertyKey): string {
  const said = string(key);
  return object === '' ? said : `${object}.${said}`;
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
