/**
 * A thread that runs one program of JavaScript in QuickJS, compiled to WebAssembly: ECMAScript with `console` and `stdin`
 * (the text that it was given), and no `require`, no files, no timers, no network.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { newQuickJSWASMModuleFromVariant, newVariant, RELEASE_SYNC } from 'quickjs-emscripten';

const { argv, stdin, memoryBytes } = workerData;
const STACK_BYTES = 512 * 1024;

// QuickJS's own limit (`setMemoryLimit`) lets a gigabyte through that it is not to: this is one of WebAssembly.
const PAGE = 65_536;
const INITIAL_PAGES = 256;
const maximum = Math.max(INITIAL_PAGES, Math.floor(memoryBytes / PAGE));
const wasmMemory = new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum });
const quickjs = await newQuickJSWASMModuleFromVariant(newVariant(RELEASE_SYNC, { wasmMemory }));
const runtime = quickjs.newRuntime();
runtime.setMaxStackSize(STACK_BYTES);
const context = runtime.newContext();

const say = (fd, text) => parentPort.postMessage({ fd, data: Buffer.from(text) });
const shown = (value) => (typeof value === 'object' ? JSON.stringify(value) : String(value));
const print = (fd) =>
  context.newFunction('print', (...values) => {
    say(fd, `${values.map((value) => shown(context.dump(value))).join(' ')}\n`);
  });
const logger = context.newObject();
for (const [name, fd] of Object.entries({ log: 1, info: 1, warn: 2, error: 2 })) {
  context.setProp(logger, name, print(fd));
}
context.setProp(context.global, 'console', logger);
context.setProp(context.global, 'stdin', context.newString(Buffer.from(stdin).toString()));

let exit = 0;
const failed = (handle) => {
  const error = context.dump(handle);
  say(2, `${error?.name ?? 'Error'}: ${error?.message ?? shown(error)}\n${error?.stack ?? ''}`);
  exit = 1;
};
const result = context.evalCode(argv[0], 'program.js', { type: 'global' });
if (result.error) failed(result.error);
else {
  const jobs = runtime.executePendingJobs();
  if (jobs.error) failed(jobs.error);
}
parentPort.postMessage({ exit });
