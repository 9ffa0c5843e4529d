// Runs in the sandbox of an agent, whose network has nobody in it: it listens where the agent looks for the gateway, passes
// on what comes to the gateway's socket, starts the agent, and ends as the agent ends.
// Arguments: port, socket, the agent's folder, and its command.
import { spawn } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { constants } from 'node:os';

const [port, socket, cwd, program, ...args] = process.argv.slice(2);

const server = createServer({ allowHalfOpen: true }, (agent) => {
  const gateway = connect({ path: socket, allowHalfOpen: true });
  agent.on('error', () => gateway.destroy());
  gateway.on('error', () => agent.destroy());
  // The gateway must hear of an agent that went before it was answered.
  agent.on('close', () => gateway.destroy());
  agent.pipe(gateway).pipe(agent);
});

server.listen(Number(port), '127.0.0.1', () => {
  const agent = spawn(program, args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
  agent.once('error', ({ message }) => {
    console.error(`${program} could not be started: ${message}`);
    process.exit(127);
  });
  agent.once('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
});
