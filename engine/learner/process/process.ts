/** The learner's own process: answers a parent over IPC, one step or scoring at a time. Ends with the parent. */
import { Worker } from 'node:worker_threads';
import { pageAligned } from '../../page-aligned.ts';
import type { Learner } from '../contract.ts';
import { createLocalLearner } from '../local-learner.ts';
import { FILE, toSentError } from './messages.ts';
import type { FromLearner, ScoringRequest, Sent, SentState, StepRequest, ToLearner } from './messages.ts';
import { readValue, writeValue } from './shared-file.ts';

const send = (message: FromLearner) => {
  process.send?.(message);
};

let learner: Learner | undefined;
/** What was sent, and the last state, under their numbers. */
const held = new Map<number, unknown>();

function received<T>({ id, value }: Sent<T>): T {
  if (value !== undefined) held.set(id, value);
  if (!held.has(id)) throw new Error(`the learner process does not hold number ${id}`);
  return held.get(id) as T;
}

function forgetAllBut(keep: readonly number[]): void {
  for (const id of held.keys()) if (!keep.includes(id)) held.delete(id);
}

async function handle(message: ToLearner): Promise<void> {
  if (message.kind === 'start') {
    learner = await createLocalLearner(message.options);
    send({ kind: 'ready', backend: learner.backend });
    return;
  }
  if (!learner) throw new Error(`a ${message.kind} came before the start`);
  const request = await readValue(FILE, message.request, pageAligned);
  if (message.kind === 'step') await step(learner, request as StepRequest);
  else await score(learner, request as ScoringRequest);
}

async function step(learner: Learner, request: StepRequest): Promise<void> {
  const { batch, settings, next } = request;
  forgetAllBut(request.keep);
  const parent = received(request.parent);
  const others = {
    reference: request.reference && received(request.reference),
    teachers: request.teachers.map(received),
  };
  const { state, metrics } = await learner.step(parent, batch, settings, others, (done, total) => {
    send({ kind: 'progress', done, total });
  });
  held.delete(request.parent.id);
  held.set(next, state);
  const { weights, ...rest } = state;
  const sent: SentState = weights === parent.weights ? rest : state;
  send({ kind: 'done', state: await writeValue(FILE, sent), metrics });
}

async function score(learner: Learner, request: ScoringRequest): Promise<void> {
  const { model, batch, what, compute } = request;
  forgetAllBut(request.keep);
  const whole = 'id' in model ? received(model) : { ...model, weights: received(model.weights) };
  const scores = await learner.score(whole, batch, what, compute);
  send({ kind: 'scored', scores: await writeValue(FILE, scores) });
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
