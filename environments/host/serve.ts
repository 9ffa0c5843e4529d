import { GradusError, isA } from '../../core/errors.ts';
import type { TaskRef } from '../../core/refs.ts';
import type { TierAnswer } from '../../core/tier-contract.ts';
import type { Candidate, Environment, Task, TierVerifier, ToolContext, Verdict } from '../contract.ts';
import { boundaryOf, fromError } from './asks.ts';
import type { Answer, Ask, AskKind, AskKinds, HostCandidate, Meaning, Said } from './asks.ts';
import { errorOfUsers, wordsOf } from './facts.ts';
import { inTime } from './in-time.ts';
import {
  readDemonstration,
  readFinding,
  readHint,
  readSubject,
  readTask,
  readVerdict,
} from './read-answers.ts';
import type { Read } from './read-answers.ts';
import { attemptCall, refuseCall } from './tool-call.ts';
import { whatWentWrong } from './what-went-wrong.ts';

export interface ServeContext {
  signal: AbortSignal;
  heartbeat: ToolContext['heartbeat'];
}

/** Longest time for which items are begun one after another before whatever else waits has its turn, milliseconds. */
const TURN_MS = 100;

/** Runs users' code, item by item. Whatever it throws or returns becomes an answer that is what the ask promises. */
export async function serve(
  { environment, file }: { environment: Environment; file: string },
  ask: Ask,
  context: ServeContext,
): Promise<Answer[]> {
  if (environment.prepare) {
    try {
      await prepared(environment, file);
    } catch (error) {
      const failure = fromError(error as GradusError);
      return ask.items.map(() => ({ error: failure }));
    }
  }
  const one = async (item: AskKinds[AskKind]['item']): Promise<Answer> => {
    try {
      return { ok: await answerTo(environment, ask.kind, item, context) };
    } catch (error) {
      if (isA(error, GradusError)) return { error: fromError(error) };
      const message = `${environment.name} (${file}) failed: ${wordsOf(error)}`;
      // A tier's verifier says itself how many attempts it has.
      const retryable = ask.kind === 'findings';
      return { error: { boundary: boundaryOf(ask.kind), type: 'failed', message, retryable } };
    }
  };
  const answers: Promise<Answer>[] = [];
  let since = performance.now();
  for (const item of ask.items) {
    answers.push(one(item));
    // Synchronous code has run by now. Between items others have their turn, and a sign of life is given.
    if (performance.now() - since < TURN_MS) continue;
    await new Promise((resolve) => setImmediate(resolve));
    since = performance.now();
  }
  return Promise.all(answers);
}

const preparing = new WeakMap<Environment, Promise<void>>();
/** How long `prepare()` may take, milliseconds. */
const PREPARE_LIMIT_MS = 60_000;

/** Waits until an environment has prepared itself. Throws GradusError('environment', 'prepare', retryable). */
function prepared(environment: Environment, file: string): Promise<void> {
  let under = preparing.get(environment);
  if (!under) {
    // Whoever began it may be called off; others wait for it, too.
    const { signal } = new AbortController();
    const late = (seconds: number): Error => new Error(`took longer than ${seconds} s`);
    under = inTime(signal, PREPARE_LIMIT_MS, () => environment.prepare!(), late).catch((cause: unknown) => {
      preparing.delete(environment);
      const message = `prepare() of ${environment.name} (${file}) failed: ${wordsOf(cause)}`;
      throw new GradusError('environment', 'prepare', message, { retryable: true, cause });
    });
    preparing.set(environment, under);
  }
  return under;
}

async function answerTo(
  environment: Environment,
  kind: AskKind,
  item: AskKinds[AskKind]['item'],
  context: ServeContext,
): Promise<AskKinds[AskKind]['answer']> {
  switch (kind) {
    case 'tasks':
      return { prompt: taskOf(environment, item as TaskRef).prompt };
    case 'demonstrations': {
      const { ref, index } = item as AskKinds['demonstrations']['item'];
      const task = taskOf(environment, ref);
      const demonstration = promised(environment, 'demonstrate()', 'demonstration', () =>
        readDemonstration(environment.demonstrate(task, index)),
      );
      return { prompt: task.prompt, demonstration };
    }
    case 'hints': {
      const { evidence, ...failed } = item as AskKinds['hints']['item'];
      return hintFor(environment, candidateOf(environment, failed), evidence);
    }
    case 'relabellings': {
      const { verifiers, ...failed } = item as AskKinds['relabellings']['item'];
      return relabelled(environment, candidateOf(environment, failed), verifiers, context.signal);
    }
    case 'refusals':
      return refuseCall(item as AskKinds['refusals']['item'], environment.tools, context.signal);
    case 'calls': {
      const { call, ...rest } = item as AskKinds['calls']['item'];
      const refusal = await refuseCall(call, environment.tools, context.signal);
      if (refusal) return refusal;
      const tool = environment.tools.find(({ name }) => name === call.name)!;
      return attemptCall(tool, call, { ...rest, ...context });
    }
    case 'verdicts': {
      const { verifiers, ...judged } = item as AskKinds['verdicts']['item'];
      const candidate = candidateOf(environment, judged);
      return Promise.all(
        verifiers.map((name) => verdictOf(environment, name, ownCopy(candidate), context.signal)),
      );
    }
    case 'subjects': {
      const { verifier: name, ...judged } = item as AskKinds['subjects']['item'];
      const verifier = tierVerifier(environment, name);
      const candidate = candidateOf(environment, judged);
      return promised(environment, `the subject() of ${name}`, 'subject', () =>
        readSubject(verifier.subject(candidate)),
      );
    }
    case 'interpretations': {
      const { verifier: name, answer, ...judged } = item as AskKinds['interpretations']['item'];
      const verifier = tierVerifier(environment, name);
      const candidate = candidateOf(environment, judged);
      return interpreted(verifier, candidate, answer);
    }
    case 'findings': {
      const { verifier: name, subject } = item as AskKinds['findings']['item'];
      const { served } = tierVerifier(environment, name);
      if (served.by !== 'function') {
        throw new GradusError('verifier', 'unknown', `${name} of ${environment.name} is no function`);
      }
      // One that is deaf to the signal must not keep the slot.
      const said: unknown = await inTime(context.signal, null, () =>
        served.verify(subject, { signal: context.signal, heartbeat: () => context.heartbeat() }),
      ).catch((error: unknown) => {
        throw isA(error, GradusError) ? errorOfUsers('verifier', error) : error;
      });
      const found = readFinding(said);
      if ('value' in found) return found.value;
      throw new GradusError('verifier', 'bad-answer', `the verifier ${name} ${found.fault}: mend it`);
    }
    default:
      throw new GradusError('environment', 'unknown-ask', `a host is not asked for ${String(kind)}`);
  }
}

function taskOf(environment: Environment, ref: TaskRef): Task {
  return { ...promised(environment, 'task()', 'task', () => readTask(environment.task(ref))), ref };
}

/** Throws GradusError('environment', type) where a function of the environment throws, or gives what it must not. */
function promised<T>(environment: Environment, what: string, type: string, work: () => Read<T>): T {
  const failed = (how: string, cause?: unknown): GradusError =>
    new GradusError('environment', type, `${what} of ${environment.name} ${how}`, { cause });
  let read: Read<T>;
  try {
    read = work();
  } catch (error) {
    throw failed(`threw: ${wordsOf(error)}`, error);
  }
  if ('fault' in read) throw failed(read.fault);
  return read.value;
}

function candidateOf(environment: Environment, { ref, episode }: HostCandidate): Candidate {
  const { status } = episode;
  return {
    task: taskOf(environment, ref),
    episode,
    answer: status.kind === 'answered' ? status.answer : null,
    tools: environment.tools.map(({ name }) => name),
  };
}

function hintFor(environment: Environment, candidate: Candidate, evidence: readonly string[]): string {
  const own = promised(environment, 'hint()', 'hint', () =>
    readHint(environment.hint?.(ownCopy(candidate)) ?? null),
  );
  return own ?? whatWentWrong(candidate, evidence);
}

async function relabelled(
  environment: Environment,
  candidate: Candidate,
  verifiers: readonly string[],
  signal: AbortSignal,
): Promise<AskKinds['relabellings']['answer']> {
  const other: unknown = environment.relabel?.(ownCopy(candidate)) ?? null;
  if (other === null) return null;
  const { ref } = candidate.task;
  const task = { ...promised(environment, 'relabel()', 'relabel', () => readTask(other)), ref };
  const said = verifiers.map((name) => verdictOf(environment, name, ownCopy({ ...candidate, task }), signal));
  return { prompt: task.prompt, said: await Promise.all(said) };
}

/** For one verifier: what it changes in it no other one is to see. `info` is the environment's own. */
const ownCopy = ({ task, episode, tools, answer }: Candidate): Candidate => ({
  task: { ...task },
  episode: structuredClone(episode),
  answer,
  tools: [...tools],
});

/** A fast verifier that takes longer has hung, and abstains, milliseconds. */
export const FAST_LIMIT_MS = 10_000;

/** A verifier that throws, or says what is no score, abstains: its error is never a zero. */
async function verdictOf(
  environment: Environment,
  name: string,
  candidate: Candidate,
  signal: AbortSignal,
): Promise<Said> {
  const verifier = environment.verifiers.find((other) => other.name === name);
  if (!verifier) {
    return { verifier: name, version: '', score: null, evidence: `${environment.name} has no such verifier` };
  }
  const { version } = verifier;
  if (verifier.tier !== 'fast') {
    const evidence = `${verifier.tier} verifiers are rungs of a ladder, not components of a reward`;
    return { verifier: name, version, score: null, evidence };
  }
  try {
    const said: unknown = await inTime(signal, FAST_LIMIT_MS, (limited) =>
      verifier.verify(candidate, limited),
    );
    return { verifier: name, version, ...meaningOf(readVerdict(said, candidate.episode.turns.length)) };
  } catch (error) {
    signal.throwIfAborted();
    return { verifier: name, version, ...meaningOf({ fault: `threw: ${wordsOf(error)}` }) };
  }
}

/** A verdict in the form in which it is kept. */
function meaningOf(read: Read<Verdict>): Meaning {
  if ('fault' in read) return { score: null, evidence: read.fault, fault: read.fault };
  const verdict = read.value;
  if (verdict.kind === 'abstain') return { score: null, evidence: verdict.reason };
  const { score, steps, canonical, evidence } = verdict;
  return {
    score,
    ...(steps !== undefined && { steps: [...steps] }),
    ...(canonical !== undefined && { canonical }),
    ...(evidence !== undefined && { evidence }),
  };
}

/** What a tier's answer means to an environment that leaves it as it is, or interprets it. */
function interpreted(verifier: TierVerifier, candidate: Candidate, answer: TierAnswer): Meaning {
  const fault = answer.kind === 'abstained' ? verifier.faults?.[answer.type] : undefined;
  if (answer.kind === 'abstained' && fault !== undefined) {
    return { score: fault, evidence: `${answer.type}: ${answer.reason}` };
  }
  if (verifier.interpret) {
    try {
      return meaningOf(readVerdict(verifier.interpret(candidate, answer), candidate.episode.turns.length));
    } catch (error) {
      return meaningOf({ fault: `threw: ${wordsOf(error)}` });
    }
  }
  if (answer.kind === 'abstained') return { score: null, evidence: `${answer.type}: ${answer.reason}` };
  if (answer.kind === 'measured') {
    return { score: null, evidence: `${verifier.name} measures, and its environment does not interpret it` };
  }
  const { score, evidence } = answer;
  return { score, ...(evidence !== undefined && { evidence }) };
}

function tierVerifier(environment: Environment, name: string): TierVerifier {
  const verifier = environment.verifiers.find((other) => other.name === name);
  if (verifier && verifier.tier !== 'fast') return verifier;
  const message = `${environment.name} has no verifier of a tier called ${name}`;
  throw new GradusError('verifier', 'unknown', message);
}
