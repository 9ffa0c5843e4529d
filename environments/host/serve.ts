import { GradusError, isA } from '../../core/errors.ts';
import type { Json } from '../../core/json/json.ts';
import type { MadeTaskRef } from '../../core/refs.ts';
import type { TierAnswer } from '../../core/tier-contract.ts';
import type {
  Candidate,
  Environment,
  Proposals,
  Task,
  TierVerifier,
  Tool,
  ToolContext,
  Verdict,
} from '../contract/environment.ts';
import { boundaryOf, fromError } from './asks.ts';
import type {
  HostAnswer,
  HostRequest,
  AskedCall,
  AskKind,
  AskKinds,
  Called,
  HostCandidate,
  Meaning,
  HostedVerdict,
  SessionAsk,
} from './asks.ts';
import { errorOfUsers, toolFacts, errorText } from './facts.ts';
import type { SentImage } from './images.ts';
import { inTime } from './in-time.ts';
import { ownTask } from './own-task.ts';
import {
  readDemonstration,
  readFinding,
  readHint,
  readProposed,
  readSubject,
  readTask,
  readVaried,
  readVerdict,
} from './read-answers.ts';
import type { Read } from './read-answers.ts';
import { readPresentation } from './read-presentation.ts';
import { closeOf, endOfSession, readySession } from './sessions.ts';
import { attemptCall, refuseCall, runTool } from './tool-call.ts';
import { whatWentWrong } from './what-went-wrong.ts';

export interface ServeContext {
  signal: AbortSignal;
  heartbeat: ToolContext['heartbeat'];
  /** Told when an environment begins to prepare itself, and has ended that. */
  preparing?: (isIt: boolean) => void;
}

/** Runs users' code, item by item. Whatever it throws or returns becomes an answer that is what the ask promises. */
export async function serve(
  { environment, file }: { environment: Environment; file: string },
  ask: HostRequest,
  context: ServeContext,
): Promise<HostAnswer[]> {
  if (environment.prepare) {
    try {
      await prepared(environment, file, context.preparing);
    } catch (error) {
      const failure = fromError(error as GradusError);
      return ask.items.map(() => ({ error: failure }));
    }
  }
  const one = async (item: AskKinds[AskKind]['item']): Promise<HostAnswer> => {
    try {
      return { ok: await answerTo(environment, ask.kind, item, context) };
    } catch (error) {
      if (isA(error, GradusError)) return { error: fromError(error) };
      const message = `${environment.name} (${file}) failed: ${errorText(error)}`;
      // A tier's verifier says itself how many attempts it has.
      const retryable = ask.kind === 'findings';
      return { error: { boundary: boundaryOf(ask.kind), type: 'failed', message, retryable } };
    }
  };
  const answers: Promise<HostAnswer>[] = [];
  for (const item of ask.items) {
    answers.push(one(item));
    // Whatever of it need not wait is done before the next begins: others have their turn, and a sign of life is given.
    if (ask.items.length > 1) await new Promise((resolve) => setImmediate(resolve));
  }
  return Promise.all(answers);
}

const tooLong = (seconds: number): Error => new Error(`took longer than ${seconds} s`);

const preparing = new WeakMap<Environment, Promise<void>>();
/** How long `prepare()` may take, and any other function that is no verifier and no call, milliseconds. */
export const FUNCTION_LIMIT_MS = 60_000;

/** Waits until an environment has prepared itself. Throws GradusError('environment', 'prepare', retryable). */
function prepared(
  environment: Environment,
  file: string,
  tell: ServeContext['preparing'] = () => undefined,
): Promise<void> {
  let under = preparing.get(environment);
  if (!under) {
    // Whoever began it may be called off; others wait for it, too.
    const { signal } = new AbortController();
    tell(true);
    under = inTime(signal, FUNCTION_LIMIT_MS, () => environment.prepare!(), tooLong)
      .catch((cause: unknown) => {
        preparing.delete(environment);
        const message = `prepare() of ${environment.name} (${file}) failed: ${errorText(cause)}`;
        throw new GradusError('environment', 'prepare', message, { retryable: true, cause });
      })
      .finally(() => tell(false));
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
    case 'tasks': {
      const { prompt, tools } = await taskOf(environment, item as MadeTaskRef);
      return { prompt, ...(tools && { tools: tools.map(toolFacts) }) };
    }
    case 'demonstrations': {
      const { ref, index } = item as AskKinds['demonstrations']['item'];
      const task = await taskOf(environment, ref);
      const demonstration = await promised(
        environment,
        'demonstrate()',
        'demonstration',
        () => expertOf(environment)(task, index),
        readDemonstration,
      );
      return {
        prompt: task.prompt,
        demonstration,
        ...(task.tools && { tools: task.tools.map(toolFacts) }),
      };
    }
    case 'hints': {
      const { evidence, ...failed } = item as AskKinds['hints']['item'];
      return hintFor(environment, await candidateOf(environment, failed), evidence);
    }
    case 'relabellings': {
      const { verifiers, ...failed } = item as AskKinds['relabellings']['item'];
      return relabelled(environment, await candidateOf(environment, failed), verifiers, context.signal);
    }
    case 'refusals': {
      const asked = item as AskKinds['refusals']['item'];
      return refuseCall(asked.call, await toolsOf(environment, asked), context.signal);
    }
    case 'calls':
      return called(environment, item as AskKinds['calls']['item'], context);
    case 'endings': {
      const { session, end } = item as AskKinds['endings']['item'];
      const task = await knownTask(environment, session.ref);
      const tools = task.tools ?? environment.tools;
      return endOfSession(environment, task, session, tools, end, callContext(environment, session, context));
    }
    case 'closings': {
      const session = item as AskKinds['closings']['item'];
      await closeOf(environment, await knownTask(environment, session.ref), session, context.signal);
      return null;
    }
    case 'verdicts': {
      const { verifiers, ...judged } = item as AskKinds['verdicts']['item'];
      const candidate = await candidateOf(environment, judged);
      return Promise.all(
        verifiers.map((name) => verdictOf(environment, name, ownCopy(candidate), context.signal)),
      );
    }
    case 'subjects': {
      const { verifier: name, ...judged } = item as AskKinds['subjects']['item'];
      const verifier = tierVerifier(environment, name);
      const candidate = await candidateOf(environment, judged);
      const what = `the subject() of ${name}`;
      return promised(environment, what, 'subject', () => verifier.subject(candidate), readSubject);
    }
    case 'interpretations': {
      const { verifier: name, answer, ...judged } = item as AskKinds['interpretations']['item'];
      const verifier = tierVerifier(environment, name);
      const candidate = await candidateOf(environment, judged);
      return interpreted(verifier, candidate, answer);
    }
    case 'proposals': {
      const candidate = await candidateOf(environment, item as HostCandidate);
      const what = 'proposals.check()';
      return promised(
        environment,
        what,
        'proposal',
        () => checkerOf(environment)(ownCopy(candidate), context.signal),
        readProposed,
      );
    }
    case 'variations': {
      const { ref, index } = item as AskKinds['variations']['item'];
      const task = await taskOf(environment, ref);
      const vary = () => varierOf(environment)(task, index);
      return promised(environment, 'vary()', 'variation', vary, readVaried);
    }
    case 'findings': {
      const { verifier: name, subject } = item as AskKinds['findings']['item'];
      const { served } = tierVerifier(environment, name);
      if (served.by !== 'function') {
        throw new GradusError('verifier', 'unknown', `${name} of ${environment.name} is no function`);
      }
      // One that is deaf to the signal must not keep the slot.
      const answer: unknown = await inTime(context.signal, null, () =>
        served.verify(subject, { signal: context.signal, heartbeat: () => context.heartbeat() }),
      ).catch((error: unknown) => {
        throw isA(error, GradusError) ? errorOfUsers('verifier', error) : error;
      });
      const found = readFinding(answer);
      if ('value' in found) return found.value;
      throw new GradusError('verifier', 'bad-answer', `the verifier ${name} ${found.fault}: fix it`);
    }
    case 'presentations':
      return promised(
        environment,
        'present()',
        'present',
        () => presentationOf(environment, item as Json, context.signal),
        readPresentation,
      );
    default:
      throw new GradusError('environment', 'unknown-ask', `a host is not asked for ${String(kind)}`);
  }
}

async function called(
  environment: Environment,
  asked: AskKinds['calls']['item'],
  serving: ServeContext,
): Promise<Called> {
  const { call, session, idempotencyKey, attempt } = asked;
  const tools = await toolsOf(environment, asked);
  const refusal = await refuseCall(call, tools, serving.signal);
  if (refusal) return { observation: refusal };
  const tool = tools.find(({ name }) => name === call.name)!;
  const context = { ...callContext(environment, session, serving), idempotencyKey, attempt };
  const ready = tool.run
    ? null
    : await readySession(environment, await knownTask(environment, session.ref), session, tools, context);
  let images: readonly SentImage[] | undefined;
  try {
    const observation = await attemptCall(tool, call, context, async (...given) => {
      const did = await (ready?.act(given[1], given[2]) ?? runTool(...given));
      ({ images } = did);
      return did;
    });
    return { observation, ...(images && { images }), ...(ready && { session: ready.kept }) };
  } catch (error) {
    ready?.giveUp();
    throw error;
  }
}

function expertOf(environment: Environment): NonNullable<Environment['demonstrate']> {
  if (environment.demonstrate) return (task, index) => environment.demonstrate!(task, index);
  throw new GradusError('environment', 'demonstration', `${environment.name} has no demonstrate()`);
}

function checkerOf({ name, proposals }: Environment): Proposals['check'] {
  if (proposals) return (candidate, signal) => proposals.check(candidate, signal);
  throw new GradusError('environment', 'proposal', `${name} has no proposals`);
}

function varierOf(environment: Environment): NonNullable<Environment['vary']> {
  if (environment.vary) return (task, index) => environment.vary!(task, index);
  throw new GradusError('environment', 'variation', `${environment.name} has no vary()`);
}

/** Somebody looks at a page and waits, milliseconds. */
export const PRESENT_LIMIT_MS = 3000;

function presentationOf(environment: Environment, subject: Json, signal: AbortSignal): Promise<unknown> {
  if (!environment.present) {
    throw new GradusError('environment', 'present', `${environment.name} has no present()`);
  }
  const late = (seconds: number): Error => new Error(`showed nothing in ${seconds} s`);
  return inTime<unknown>(signal, PRESENT_LIMIT_MS, () => environment.present!(subject), late);
}

/** What a session's functions are told where no call is made. */
const callContext = (
  environment: Environment,
  { ref, id }: SessionAsk,
  { signal, heartbeat }: ServeContext,
): ToolContext => ({
  idempotencyKey: id,
  attempt: 1,
  signal,
  heartbeat,
  task: async () => ownTask(await knownTask(environment, ref)),
});

/** Tasks that calls of one episode after another want, by their coordinates. */
const madeTasks = new WeakMap<Environment, Map<string, Promise<Task>>>();
const MOST_TASKS = 512;

async function knownTask(environment: Environment, ref: MadeTaskRef): Promise<Task> {
  const tasks = madeTasks.get(environment) ?? new Map<string, Promise<Task>>();
  madeTasks.set(environment, tasks);
  // The same place of another source is another task.
  const made = ref.made ? ` ${JSON.stringify(ref.made)}` : '';
  const key = `${ref.split} ${ref.level} ${ref.index}${made}`;
  const known = tasks.get(key);
  if (known) return known;
  const task = taskOf(environment, ref);
  tasks.set(key, task);
  task.catch(() => tasks.delete(key));
  for (const [oldest] of tasks) {
    if (tasks.size <= MOST_TASKS) break;
    tasks.delete(oldest);
  }
  return task;
}

async function taskOf(environment: Environment, ref: MadeTaskRef): Promise<Task> {
  return { ...(await promised(environment, 'task()', 'task', () => environment.task(ref), readTask)), ref };
}

const toolsOf = async (environment: Environment, { ownTool, session }: AskedCall): Promise<readonly Tool[]> =>
  (ownTool && (await knownTask(environment, session.ref)).tools) ?? environment.tools;

/**
 * What a function of the environment gives. Throws GradusError('environment', type) where it throws, takes too long, or
 * gives what it must not.
 */
async function promised<T>(
  environment: Environment,
  what: string,
  type: string,
  work: () => unknown,
  read: (answer: unknown) => Read<T>,
): Promise<T> {
  const failed = (how: string, cause?: unknown, retryable = false): GradusError =>
    new GradusError('environment', type, `${what} of ${environment.name} ${how}`, { cause, retryable });
  let made: Read<T>;
  try {
    // Whoever asked first may be called off; others may wait for the same task.
    made = read(await inTime(null, FUNCTION_LIMIT_MS, work, tooLong));
  } catch (error) {
    // It may know that what it needs will be there again, and no more than that.
    const { retryable } = isA(error, GradusError) ? errorOfUsers('environment', error) : { retryable: false };
    throw failed(`threw: ${errorText(error)}`, error, retryable);
  }
  if ('fault' in made) throw failed(made.fault);
  return made.value;
}

async function candidateOf(environment: Environment, { ref, episode }: HostCandidate): Promise<Candidate> {
  const { status } = episode;
  const task = ownTask(await knownTask(environment, ref));
  return {
    task,
    episode,
    answer: status.kind === 'answered' ? status.answer : null,
    tools: (task.tools ?? environment.tools).map(({ name }) => name),
  };
}

async function hintFor(
  environment: Environment,
  candidate: Candidate,
  evidence: readonly string[],
): Promise<string> {
  const hint = (): unknown => environment.hint?.(ownCopy(candidate)) ?? null;
  const own = await promised(environment, 'hint()', 'hint', hint, readHint);
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
  const task = { ...(await promised(environment, 'relabel()', 'relabel', () => other, readTask)), ref };
  const verdicts = verifiers.map((name) =>
    verdictOf(environment, name, ownCopy({ ...candidate, task }), signal),
  );
  return { prompt: task.prompt, said: await Promise.all(verdicts) };
}

/** For one verifier: what it changes in it no other one is to see. `info` is the environment's own. */
const ownCopy = ({ task, episode, tools, answer }: Candidate): Candidate => ({
  task: { ...task },
  episode: structuredClone(episode),
  answer,
  tools: [...tools],
});

class OutOfTime extends Error {}

/** A fast verifier that takes longer has hung, and its episode is `failed`, milliseconds. */
export const FAST_LIMIT_MS = 10_000;

/** A verifier that throws, or says what is no score, abstains: its error is never a zero. */
async function verdictOf(
  environment: Environment,
  name: string,
  candidate: Candidate,
  signal: AbortSignal,
): Promise<HostedVerdict> {
  const verifier = environment.verifiers.find((other) => other.name === name);
  if (!verifier) {
    return { verifier: name, version: '', score: null, evidence: `${environment.name} has no such verifier` };
  }
  const { version } = verifier;
  if (verifier.tier !== 'fast') {
    const evidence = `${verifier.tier} verifiers are tiers of a ladder, not components of a reward`;
    return { verifier: name, version, score: null, evidence };
  }
  try {
    const answer: unknown = await inTime(
      signal,
      FAST_LIMIT_MS,
      (limited) => verifier.verify(candidate, limited),
      (seconds) => new OutOfTime(`gave no verdict in ${seconds} s`),
    );
    return { verifier: name, version, ...meaningOf(readVerdict(answer, candidate.episode.turns.length)) };
  } catch (error) {
    signal.throwIfAborted();
    // That it was slow says nothing of the candidate.
    if (error instanceof OutOfTime) {
      throw new GradusError('verifier', 'timeout', `the verifier ${name} ${error.message}`, { cause: error });
    }
    return { verifier: name, version, ...meaningOf({ fault: `threw: ${errorText(error)}` }) };
  }
}

/** A verdict in the form in which it is kept. */
function meaningOf(read: Read<Verdict>): Meaning {
  if ('fault' in read) return { score: null, evidence: read.fault, fault: read.fault };
  const verdict = read.value;
  const { canonical } = verdict;
  if (verdict.kind === 'abstain')
    return { score: null, ...(canonical !== undefined && { canonical }), evidence: verdict.reason };
  const { score, steps, evidence } = verdict;
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
      return meaningOf({ fault: `threw: ${errorText(error)}` });
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
