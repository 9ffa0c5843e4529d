// Runs one server and ends with it. Its standard input is a pipe that the parent holds open and never writes to: when
// the parent is gone, however it went, the pipe closes, and the server goes too. Plain JavaScript, so that it starts
// in some 30 ms.
//
//   node watchdog.mjs LOGFILE COMMAND ARGS…
// Prints {"pid":N} and later {"code":N|null,"signal":S|null}, or {"error":"…"}, one JSON object a line.
import { spawn } from 'node:child_process';
import { openSync, rmSync, writeFileSync } from 'node:fs';
import process from 'node:process';

const GRACE_MS = 3000;
const [logFile, command, ...args] = process.argv.slice(2);
const tell = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
process.stdout.on('error', () => undefined); // the parent no longer listens

const log = openSync(logFile, 'a', 0o600);
// Tells the next start on the same data that this server may still be ending.
const pidFile = `${logFile}.pid`;
writeFileSync(pidFile, String(process.pid));
process.once('exit', () => rmSync(pidFile, { force: true }));
const server = spawn(command, args, { stdio: ['ignore', log, log] });
server.once('spawn', () => tell({ pid: server.pid }));
server.once('error', (error) => {
  tell({ error: error.message });
  process.exitCode = 1;
  process.stdin.destroy();
});
server.once('exit', (code, signal) => {
  tell({ code, signal });
  process.stdin.destroy();
  process.exitCode = 0;
});

function endServer() {
  if (server.exitCode !== null || server.signalCode !== null) return;
  server.kill('SIGTERM');
  const force = setTimeout(() => server.kill('SIGKILL'), GRACE_MS);
  server.once('exit', () => clearTimeout(force));
}

process.stdin.resume();
process.stdin.once('close', endServer);
process.stdin.on('error', endServer);
// The parent decides when: signals that reach the watchdog by way of its group mean the same as the closed pipe.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, endServer);
