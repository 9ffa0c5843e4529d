// Beside a worker's event loop, in a thread that nothing else blocks: it gives heartbeats of the activities under way, names
// what keeps the loop, and ends the process when that takes too long. Plain JavaScript, so that it starts in some 50 ms,
// before there is anything to watch.
import { writeSync } from 'node:fs';
import { Session } from 'node:inspector';
import process from 'node:process';
import { parentPort, workerData } from 'node:worker_threads';
import { Client, credentials } from '@grpc/grpc-js';
import protobuf from 'protobufjs/minimal.js';

/** @type {{ turns: Int32Array, address: string, namespace: string, endAfterSeconds: number }} */
const { turns, address, namespace, endAfterSeconds } = workerData;

const LOOKS_A_SECOND = 2;
/** Seconds without a turn of the loop, after which this thread speaks also for activities that give their own heartbeats. */
const SPEAK_AFTER = 1;
/** Seconds between two heartbeats of one attempt from this thread: several within each time-out. */
const BEAT_EVERY = 4;
const NAME_AFTER = 5;
const HEARTBEAT = '/temporal.api.workflowservice.v1.WorkflowService/RecordActivityTaskHeartbeat';

/**
 * Attempts under way. `given` says that heartbeats come from here also while the loop turns.
 * @typedef {{ name: string, token: Uint8Array, given: boolean, details?: string, sinceBeat: number, asking: boolean }} Attempt
 * @type {Map<number, Attempt>}
 */
const running = new Map();
parentPort?.on('message', ({ began, ended, gives, name, token, details }) => {
  if (began !== undefined) running.set(began, { name, token, given: false, sinceBeat: 0, asking: false });
  const attempt = running.get(gives);
  if (attempt) Object.assign(attempt, { given: true, details });
  if (ended !== undefined) running.delete(ended);
});

const server = new Client(address, credentials.createInsecure());
// Connected before it is needed, when there may be little time; without a server there is nothing to speak to.
server.waitForReady(Date.now() + 30_000, () => undefined);

/** A heartbeat replaces the details of the one before. @param {Attempt} attempt */
function heartbeat(attempt) {
  attempt.sinceBeat = 0;
  // As temporal/api/workflowservice/v1 has it: task_token = 1, details = 2, namespace = 4.
  const request = protobuf.Writer.create().uint32(10).bytes(attempt.token);
  if (attempt.details !== undefined) request.uint32(18).bytes(payloads(attempt.details));
  request.uint32(34).string(namespace);
  attempt.asking = true;
  server.makeUnaryRequest(
    HEARTBEAT,
    (bytes) => Buffer.from(bytes),
    () => undefined,
    request.finish(),
    { deadline: Date.now() + 10_000 },
    // The next one follows; what is not wanted any more is told so by heartbeats of its own.
    () => (attempt.asking = false),
  );
}

/** As temporal/api/common/v1 has it: payloads = 1; in it metadata = 1, a map, and data = 2. @param {string} json */
function payloads(json) {
  const text = new TextEncoder();
  const writer = protobuf.Writer.create().uint32(10).fork();
  writer.uint32(10).fork().uint32(10).string('encoding').uint32(18).bytes(text.encode('json/plain')).ldelim();
  return writer.uint32(18).bytes(text.encode(json)).ldelim().finish();
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
const say = (text) => {
  try {
    writeSync(2, `${text}\n`);
  } catch {
    // The disk of the log is full: what is said is lost, and what is to be done is done.
  }
};
const names = () => [...running.values()].map(({ name }) => name).join(', ') || 'no activity';

let seen = 0;
let still = 0;
setInterval(() => {
  const turn = Atomics.load(turns, 0);
  // Zero until it is watched: what happens while the worker starts is nobody's business.
  still = turn === seen && turn > 0 ? still + 1 : 0;
  seen = turn;
  const seconds = still / LOOKS_A_SECOND;
  const kept = seconds >= SPEAK_AFTER;
  for (const attempt of running.values()) {
    attempt.sinceBeat += 1 / LOOKS_A_SECOND;
    const due = kept || (attempt.given && attempt.sinceBeat >= BEAT_EVERY);
    if (due && !attempt.asking) heartbeat(attempt);
  }
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
