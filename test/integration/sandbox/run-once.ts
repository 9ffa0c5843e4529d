/** Runs its arguments in a sandbox and prints what they print: a process for tests to give descriptors to, and to kill. */
import { findBubblewrap } from '../../../environments/sandbox/bubblewrap/find.ts';

const found = await findBubblewrap();
if ('missing' in found) throw new Error(found.missing);
const { stdout } = await found.sandbox.run({ argv: process.argv.slice(2), limits: { wallSeconds: 60 } });
process.stdout.write(stdout);
