import path from 'node:path';
import { EnvironmentHost } from '../../environments/host/environment-host.ts';
import { someSession } from './some-session.ts';

// Starts a host, has it hang in a tool, prints the host's process id, and is killed as by kill -9.

const module = path.resolve('test/support/hostile-environments.ts');
const host = await EnvironmentHost.open({ modules: [module] });
const { signal } = new AbortController();
const ask = { idempotencyKey: 'run/rl/1/0/0/1', attempt: 1, signal, session: someSession };
const call = { name: 'calculator', arguments: { expression: '2+3' } };
const hanging = host.environments.get('hostile-pid-spin')!.call(call, {
  ...ask,
  heartbeat: (pid) => {
    process.stdout.write(JSON.stringify(pid), () => process.kill(process.pid, 'SIGKILL'));
  },
});
await hanging;
