/** Calls Python, prints the id of a process that serves it, and has nothing more to do, or waits for what hangs there. */
import { python } from '../../environments/connectors/python/python.ts';

const misbehaving = python('test/support/misbehaving.py', { processes: 1 });
const pid = await misbehaving.call('pid');
const next = process.argv[2] === 'is killed' ? misbehaving.call('hang') : undefined;
console.log(pid);
await next;
