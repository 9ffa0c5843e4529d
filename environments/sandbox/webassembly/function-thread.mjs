/**
 * A thread that calls functions of programs in QuickJS, each program in an instance of its own. Nothing of ours is inside:
 * arguments go in as literals, by handles, and what comes back is read from here, so a program has nothing to patch.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { parentPort } from 'node:worker_threads';
import {
  DefaultIntrinsics,
  newQuickJSWASMModuleFromVariant,
  newVariant,
  RELEASE_SYNC,
} from 'quickjs-emscripten';

const PAGE = 65_536;
const INITIAL_PAGES = 256;
const MOST_PAGES = (64 * 2 ** 20) / PAGE;
const STACK_BYTES = 128 * 1024;
/** QuickJS asks after some 10,000 steps back or calls. All calls of a program share these, so their end is no matter of time. */
const MOST_ASKED = 200;
/** Of what a function gives: letters of a text, and parts of a list with those of its parts. */
const MOST_LETTERS = 10_000;
const MOST_PARTS = 1_000;
const MOST_DEPTH = 8;
const MOST_MESSAGE = 200;

/** What there is beside the language: no clock, chance that is none, and a console that says nothing to anybody. */
const PRELUDE = `Math.random = () => 0.5;
globalThis.console = { log() {}, info() {}, warn() {}, error() {} };`;
const intrinsics = { ...DefaultIntrinsics, Date: false, BigInt: true };

const beside = createRequire(createRequire(import.meta.url).resolve('quickjs-emscripten'));
const wasmModule = await WebAssembly.compile(
  await readFile(beside.resolve('@jitl/quickjs-wasmfile-release-sync/wasm')),
);

class NoData extends Error {}

async function run({ source, name, calls }) {
  // QuickJS's own limit of memory lets more through than it is to: this is one of WebAssembly.
  const wasmMemory = new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum: MOST_PAGES });
  const variant = newVariant(RELEASE_SYNC, { wasmModule, wasmMemory });
  const runtime = (await newQuickJSWASMModuleFromVariant(variant)).newRuntime();
  runtime.setMaxStackSize(STACK_BYTES);
  let asked = 0;
  runtime.setInterruptHandler(() => ++asked > MOST_ASKED);
  const context = runtime.newContext({ intrinsics });
  const evaluate = (text, options) => context.evalCode(text, 'program.js', options);
  const { unwrap, read } = readerOf(context, unwrapped(evaluate('Array.isArray')));
  unwrap(evaluate(PRELUDE));

  const parsed = evaluate(source, { compileOnly: true });
  if (parsed.error) return { kind: 'compile-error', message: read.message(parsed.error) };
  let called;
  try {
    const value = unwrap(evaluate(source));
    called =
      context.typeof(value) === 'function'
        ? value
        : unwrap(evaluate(`typeof ${name} === 'function' && ${name}`));
  } catch (error) {
    const ended = { kind: 'error', message: messageOf(error) };
    return { kind: 'ran', results: calls.map(() => ended) };
  }
  if (context.typeof(called) !== 'function')
    return { kind: 'compile-error', message: `there is no function ${name}` };
  return { kind: 'ran', results: calls.map(callOnce) };

  function callOnce(given) {
    try {
      // A literal defines its parts: no setter of a prototype sees them.
      const list = unwrap(evaluate(JSON.stringify(given)));
      const parts = given.map((_, i) => context.getProp(list, i));
      return {
        kind: 'value',
        value: read.data(unwrap(context.callFunction(called, context.undefined, ...parts))),
      };
    } catch (error) {
      return error instanceof NoData ? { kind: 'no-data' } : { kind: 'error', message: messageOf(error) };
    }
  }
}

const unwrapped = ({ value }) => value;
/** Also of what goes wrong out here, such as a stack that is too deep for WebAssembly itself. */
const messageOf = (error) => String(error?.message ?? error).slice(0, MOST_MESSAGE);

function readerOf(context, isArray) {
  const unwrap = (result) => {
    if (result.error) throw new Error(read.message(result.error));
    return result.value;
  };
  const read = {
    /** Of what was thrown, which may be anything: its getters run, too, within the same limits. */
    message(handle) {
      const text = (part) => {
        try {
          return context.typeof(part) === 'string' ? read.text(part) : '';
        } catch {
          return '';
        }
      };
      if (context.typeof(handle) !== 'object')
        return text(handle).slice(0, MOST_MESSAGE) || 'something was thrown';
      const name = text(context.getProp(handle, 'name')) || 'Error';
      return `${name}: ${text(context.getProp(handle, 'message'))}`.slice(0, MOST_MESSAGE);
    },
    text(handle) {
      // The length of a text is its own, and no property of a prototype.
      const length = context.getNumber(context.getProp(handle, 'length'));
      if (length > MOST_LETTERS) throw new NoData();
      const text = context.getString(handle);
      // It ends at a NUL on its way out, and half a character becomes others: neither is the text that was given.
      if (text.length !== length) throw new NoData();
      return text;
    },
    /** Numbers, texts, truth and lists of them; throws NoData for all else. Each part is read once. */
    data(handle) {
      let left = MOST_PARTS;
      const from = (part, depth) => {
        switch (context.typeof(part)) {
          case 'number':
            return context.getNumber(part);
          case 'string':
            return read.text(part);
          case 'boolean':
            return context.sameValue(part, context.true);
          case 'object': {
            const isList = unwrap(context.callFunction(isArray, context.undefined, part));
            if (depth > MOST_DEPTH || !context.sameValue(isList, context.true)) throw new NoData();
            const counted = context.getProp(part, 'length');
            const length = context.typeof(counted) === 'number' ? context.getNumber(counted) : -1;
            if (!Number.isInteger(length) || length < 0 || (left -= length) < 0) throw new NoData();
            return Array.from({ length }, (_, i) => from(context.getProp(part, i), depth + 1));
          }
          default:
            throw new NoData();
        }
      };
      return from(handle, 0);
    },
  };
  return { unwrap, read };
}

parentPort.on('message', (asked) => {
  run(asked).then(
    (ran) => parentPort.postMessage(ran),
    (error) => parentPort.postMessage({ kind: 'failed', message: messageOf(error) }),
  );
});
parentPort.postMessage({ kind: 'ready' });
