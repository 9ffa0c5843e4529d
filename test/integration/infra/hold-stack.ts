/** Holds a stack up until it is ended, one way or another. Prints the servers' pids once they serve. */
import { startStack } from '../../../infra/dev/stack.ts';

const [stateDir] = process.argv.slice(2);
const stack = await startStack(stateDir, { ui: true });
const pids = [stack.temporal.pid, stack.objectStore.pid, stack.ui?.pid];
process.stdout.write(`${JSON.stringify(pids)}\n`);
