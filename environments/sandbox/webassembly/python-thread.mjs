/**
 * A thread that runs one Python program: CPython compiled to WebAssembly, with what follows of WASI (preview 1) and nothing
 * else. It has arguments, variables, a clock, random bytes and three streams; there is no call here that opens a file
 * or a socket of the host, so none can be opened. Its own library is a file system inside the module.
 */
import { parentPort, workerData } from 'node:worker_threads';

const SUCCESS = 0;
const EBADF = 8;
const ENOSYS = 52;
const CHARACTER_DEVICE = 2;

class Exit extends Error {
  constructor(code) {
    super('the program ended');
    this.code = code;
  }
}

const { module, argv, env, stdin } = workerData;
const words = argv.map((text) => Buffer.from(`${text}\0`));
const variables = Object.entries(env).map(([name, value]) => Buffer.from(`${name}=${value}\0`));
let memory;
let read = 0;

const view = () => new DataView(memory.buffer);
const bytes = (at, length) => new Uint8Array(memory.buffer, at, length);

/** Writes strings one after the other, and where each of them is. */
function putStrings(strings, pointers, at) {
  for (const [i, text] of strings.entries()) {
    view().setUint32(pointers + 4 * i, at, true);
    bytes(at, text.length).set(text);
    at += text.length;
  }
  return SUCCESS;
}

function putSizes(strings, count, size) {
  view().setUint32(count, strings.length, true);
  view().setUint32(
    size,
    strings.reduce((sum, text) => sum + text.length, 0),
    true,
  );
  return SUCCESS;
}

/** Pointers and lengths of the buffers of a scattered read or write. */
const vectors = (at, count) =>
  Array.from({ length: count }, (_, i) => [
    view().getUint32(at + 8 * i, true),
    view().getUint32(at + 8 * i + 4, true),
  ]);

const now = (clock) =>
  clock === 0 ? BigInt(Date.now()) * 1_000_000n : BigInt(Math.round(performance.now() * 1e6));

const known = {
  args_get: (pointers, at) => putStrings(words, pointers, at),
  args_sizes_get: (count, size) => putSizes(words, count, size),
  environ_get: (pointers, at) => putStrings(variables, pointers, at),
  environ_sizes_get: (count, size) => putSizes(variables, count, size),
  clock_time_get: (clock, _, at) => (view().setBigUint64(at, now(clock), true), SUCCESS),
  clock_res_get: (_, at) => (view().setBigUint64(at, 1_000_000n, true), SUCCESS),
  random_get: (at, length) => {
    for (let done = 0; done < length; done += 65_536) {
      crypto.getRandomValues(bytes(at + done, Math.min(65_536, length - done)));
    }
    return SUCCESS;
  },
  fd_write: (fd, at, count, written) => {
    if (fd !== 1 && fd !== 2) return EBADF;
    let total = 0;
    for (const [from, length] of vectors(at, count)) {
      if (length > 0) parentPort.postMessage({ fd, data: bytes(from, length).slice() });
      total += length;
    }
    view().setUint32(written, total, true);
    return SUCCESS;
  },
  fd_read: (fd, at, count, done) => {
    if (fd !== 0) return EBADF;
    let total = 0;
    for (const [to, length] of vectors(at, count)) {
      const piece = stdin.subarray(read, read + length);
      bytes(to, piece.length).set(piece);
      read += piece.length;
      total += piece.length;
    }
    view().setUint32(done, total, true);
    return SUCCESS;
  },
  fd_fdstat_get: (fd, at) => {
    if (fd > 2) return EBADF;
    bytes(at, 24).fill(0);
    view().setUint8(at, CHARACTER_DEVICE);
    view().setBigUint64(at + 8, 0x42n, true); // the rights to read and to write
    return SUCCESS;
  },
  fd_filestat_get: (fd, at) => {
    if (fd > 2) return EBADF;
    bytes(at, 64).fill(0);
    view().setUint8(at + 16, CHARACTER_DEVICE);
    return SUCCESS;
  },
  fd_close: (fd) => (fd > 2 ? EBADF : SUCCESS),
  sched_yield: () => SUCCESS,
  // What a sleep becomes: a wait for a clock. There is nothing else to wait for.
  poll_oneoff: (at, events, count, done) => {
    const CLOCK = 0;
    if (count !== 1 || view().getUint8(at + 8) !== CLOCK) return ENOSYS;
    const absolute = (view().getUint16(at + 40, true) & 1) === 1;
    const until = view().getBigUint64(at + 24, true) - (absolute ? now(view().getUint32(at + 16, true)) : 0n);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(until) / 1e6);
    bytes(events, 32).fill(0);
    view().setBigUint64(events, view().getBigUint64(at, true), true);
    view().setUint32(done, 1, true);
    return SUCCESS;
  },
  proc_exit: (code) => {
    throw new Exit(code);
  },
};

/** A call that is not known fails: of descriptors and paths because there is none, of all else because it is not there. */
const refuse = (name) => () => (name.startsWith('fd_') || name.startsWith('path_') ? EBADF : ENOSYS);
const imports = Object.fromEntries(
  WebAssembly.Module.imports(module).map(({ name }) => [name, known[name] ?? refuse(name)]),
);

const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: imports });
memory = instance.exports.memory;
let exit = 0;
try {
  instance.exports['_start']();
} catch (error) {
  if (error instanceof Exit) exit = error.code;
  else {
    // A trap, such as a stack or a memory that is used up: the program's end, as a signal is elsewhere.
    parentPort.postMessage({ fd: 2, data: Buffer.from(`${String(error)}\n`) });
    exit = 134;
  }
}
parentPort.postMessage({ exit });
