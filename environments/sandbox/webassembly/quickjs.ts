import { refuseCommand } from '../command.ts';
import type { Command, Limits } from '../contract.ts';
import { ThreadSandbox } from './thread-sandbox.ts';

/** ECMAScript by QuickJS (npm quickjs-emscripten), for `node -e PROGRAM`. */
export class QuickJs extends ThreadSandbox {
  readonly name = 'quickjs';
  protected readonly thread = new URL('quickjs-thread.mjs', import.meta.url);

  protected dataFor({ argv }: Command, { memoryBytes }: Limits): Promise<Record<string, unknown>> {
    const [program, option, source, ...rest] = argv;
    const asked = ['node', 'qjs', 'quickjs'].includes(program!) && option === '-e' && source !== undefined;
    if (!asked || rest.length > 0) refuseCommand('the sandbox quickjs runs "node -e PROGRAM" only');
    return Promise.resolve({ argv: [source], memoryBytes });
  }
}
