/** The learner's own process: answers a parent over IPC, one step at a time. Ends with the parent. */
import { Worker } from 'node:worker_threads';
import type { Weights } from '../model-config.ts';
import type { Learner, TrainState } from './contract.ts';
import { createLocalLearner } from './local-learner.ts';
import { FILE, toSentError } from './messages.ts';
import type { FromLearner, Sent, SentState, StepRequest, ToLearner } from './messages.ts';
import { readValue, writeValue } from './shared-file.ts';

const send = (message: FromLearner) => {
  process.send?.(message);
};

let learner: Learner | undefined;
let lastState: Sent<TrainState> | undefined;
let lastReference: Sent<Weights> | undefined;

function received<T>(sent: Sent<T>, kept: Sent<T> | undefined): T {
  if (sent.value !== undefined) return sent.value;
  if (kept?.id === sent.id && kept.value !== undefined) return kept.value;
  throw new Error(`the learner process does not hold number ${sent.id}`);
}

async function handle(message: ToLearner): Promise<void> {
  if (message.kind === 'start') {
    learner = await createLocalLearner(message.options);
    send({ kind: 'ready', backend: learner.backend });
    return;
  }
  if (!learner) throw new Error('a step came before the start');
  const request = (await readValue(FILE, message.request)) as StepRequest;
  const { batch, settings, next } = request;
  const parent = received(request.parent, lastState);
  let reference: Weights | undefined;
  if (request.reference) {
    reference = received(request.reference, lastReference);
    lastReference = { id: request.reference.id, value: reference };
  }
  const { state, metrics } = await learner.step(parent, batch, settings, { reference }, (done, total) => {
    send({ kind: 'progress', done, total });
  });
  lastState = { id: next, value: state };
  const { weights, ...others } = state;
  const sent: SentState = weights === parent.weights ? others : state;
  send({ kind: 'done', state: await writeValue(FILE, sent), metrics });
}

process.on('message', (message: ToLearner) => {
  handle(message).catch((error: unknown) => send({ kind: 'failed', error: toSentError(error) }));
});
process.on('disconnect', () => process.exit());
// A kernel keeps this loop for half a minute, and a successor of the parent needs the memory.
new Worker(new URL('end-with-parent.mjs', import.meta.url), {
  workerData: { parent: Number(process.argv[2]) },
}).unref();
// An interrupt reaches the whole process group; the parent decides what becomes of a step.
process.on('SIGINT', () => undefined);
