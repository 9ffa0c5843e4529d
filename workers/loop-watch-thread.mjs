// Beside a worker's event loop, in a thread that nothing else blocks: while the loop is kept, this thread gives the signs
// of life of the activities under way, names what keeps it, and ends the process when that takes too long. Plain
// JavaScript, so that it starts in some 50 ms, before there is anything to watch.
import { writeSync } from 'node:fs';
import { Session } from 'node:inspector';
import process from 'node:process';
import { parentPort, workerData } from 'node:worker_threads';
import { Client, credentials } from '@grpc/grpc-js';
import protobuf from 'protobufjs/minimal.js';

/** @type {{ turns: Int32Array, address: string, namespace: string, endAfterSeconds: number }} */
const { turns, address, namespace, endAfterSeconds } = workerData;

const LOOKS_A_SECOND = 2;
/** Seconds without a turn of the loop, until this thread speaks for it: a heartbeat time-out is six seconds. */
const SPEAK_AFTER = 1;
const NAME_AFTER = 5;
const HEARTBEAT = '/temporal.api.workflowservice.v1.WorkflowService/RecordActivityTaskHeartbeat';

/** What runs, by attempt. @type {Map<number, { name: string, token: Uint8Array }>} */
const running = new Map();
parentPort?.on('message', ({ began, ended, name, token }) => {
  if (ended === undefined) running.set(began, { name, token });
  else running.delete(ended);
});

const server = new Client(address, credentials.createInsecure());
// Connected before it is needed, when there may be little time; without a server there is nothing to speak to.
server.waitForReady(Date.now() + 30_000, () => undefined);

/** @param {Uint8Array} token */
function heartbeat(token) {
  // As temporal/api/workflowservice/v1 has it: task_token = 1, namespace = 4.
  const request = protobuf.Writer.create().uint32(10).bytes(token).uint32(34).string(namespace).finish();
  server.makeUnaryRequest(
    HEARTBEAT,
    (bytes) => Buffer.from(bytes),
    () => undefined,
    request,
    { deadline: Date.now() + 3000 },
    // The next one follows in a second; what is not wanted any more is told so by heartbeats of its own.
    () => undefined,
  );
}

/** Where the event loop is, innermost function first. @returns {Promise<string>} */
function stackOfLoop() {
  return new Promise((resolve) => {
    const session = new Session();
    session.connectToMainThread();
    /** @type {Map<string, string>} */
    const files = new Map();
    session.on('Debugger.scriptParsed', ({ params }) => files.set(params.scriptId, params.url));
    session.once('Debugger.paused', ({ params }) => {
      const frames = params.callFrames.slice(0, 8).map(({ functionName, url, location }) => {
        return `    at ${functionName || '(anonymous)'} (${url || files.get(location.scriptId)})`;
      });
      session.post('Debugger.resume');
      session.post('Debugger.disable', () => session.disconnect());
      resolve(frames.join('\n'));
    });
    session.post('Debugger.enable');
    session.post('Debugger.pause');
    setTimeout(() => resolve('    (it cannot be asked: in native code)'), 8000).unref();
  });
}

// Not process.stderr: what a thread writes there goes by way of the event loop that does not turn.
const say = (text) => writeSync(2, `${text}\n`);
const names = () => [...running.values()].map(({ name }) => name).join(', ') || 'no activity';

let seen = 0;
let still = 0;
setInterval(() => {
  const turn = Atomics.load(turns, 0);
  // Zero until it is watched: what happens while the worker starts is nobody's business.
  still = turn === seen && turn > 0 ? still + 1 : 0;
  seen = turn;
  const seconds = still / LOOKS_A_SECOND;
  if (seconds >= SPEAK_AFTER) for (const { token } of running.values()) heartbeat(token);
  if (seconds === NAME_AFTER) {
    const what = names();
    void stackOfLoop().then((stack) =>
      say(
        `worker ${process.pid}: its event loop is kept since ${NAME_AFTER} s, while running ${what}, by\n${stack}`,
      ),
    );
  }
  // Counted in looks and not by a clock: a machine that slept or a process that was stopped has not worked meanwhile.
  if (seconds >= endAfterSeconds) {
    say(
      `worker ${process.pid}: its event loop was kept for ${seconds} s, while running ${names()}; it is ended`,
    );
    process.kill(process.pid, 'SIGKILL');
  }
}, 1000 / LOOKS_A_SECOND);

parentPort?.postMessage('ready');
