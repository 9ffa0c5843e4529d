import { GradusError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import { uncounted } from '../../../core/time/uncounted.ts';
import { untilAborted } from '../../../core/until-aborted.ts';
import { runFunction } from '../../sandbox/webassembly/function-run.ts';
import type { Candidate, Proposed } from '../../contract/environment.ts';
import { isNamed, readProgram, writeProgram } from './program.ts';
import type { Expression } from './program.ts';
import { asksWhatIsHeldOut, behaviourOf, kindOf, likeOf, PROBES, SHOWN, splitOf, tooEasy } from './tasks.ts';
import type { Kind, ProgramTask } from './tasks.ts';

/** Largest result of a program, on either side of 0. */
const LARGEST = 9_999;

const WHOLE_NUMBER = /^-?\d{1,4}$/u;

/** A proposal as it is kept. */
export const toJson = ({ program, inputs }: ProgramTask): Json => ({
  program: writeProgram(program),
  inputs: [...inputs],
});

/** What was kept of a proposal, or shown as a reference. */
export function fromJson(proposal: Json): ProgramTask {
  const { program, inputs } = proposal as { program: string; inputs: number[] };
  return { program: readProgram(program) as Expression, inputs };
}

/**
 * A proposal: `x => x * 3 + 2 for 5`, with three inputs for an induction. Its program is read by the grammar of programs,
 * run twice in QuickJS with every probe, and refused where it is no task, or one whose answer its prompt would have.
 */
export async function checkProposal({ task, answer }: Candidate, signal: AbortSignal): Promise<Proposed> {
  const kind = kindOf(task.ref.level);
  const read = readTask(kind, answer ?? '');
  if ('fault' in read) return { kind: 'malformed', reason: read.fault };
  const { program } = read;
  const easy = tooEasy(kind, read);
  if (easy !== null) return { kind: 'invalid', reason: easy };
  const ran = await outputsOf(writeProgram(program), PROBES, signal);
  if ('fault' in ran) return { kind: 'invalid', reason: ran.fault };
  const behaviour = behaviourOf(program);
  if (splitOf(behaviour) !== 'train')
    return { kind: 'set-aside', reason: 'its program is one that is held out' };
  if (asksWhatIsHeldOut(kind, read))
    return { kind: 'set-aside', reason: 'its examples are those of a task that is held out' };
  return {
    kind: 'accepted',
    proposal: toJson(read),
    canonical: canonicalOf(kind, read, behaviour),
    like: likeOf(kind, program),
  };
}

/** Two tasks that ask the same of programs that give the same are the same one. */
function canonicalOf(kind: Kind, { inputs }: ProgramTask, behaviour: string): string {
  if (kind === 'induction') return behaviour;
  const at = PROBES.indexOf(inputs[0]!);
  return `${behaviour} ${kind === 'deduction' ? `for ${inputs[0]}` : `is ${behaviour.split(' ')[at]}`}`;
}

function readTask(kind: Kind, text: string): ProgramTask | { fault: string } {
  const parts = /^(.{1,80}) for (-?\d{1,2}(?:, -?\d{1,2})*)$/u.exec(text.trim());
  if (!parts) return { fault: 'is not of the form "x => x + 1 for 5"' };
  const program = readProgram(parts[1]!);
  if ('fault' in program) return program;
  const inputs = parts[2]!.split(', ').map(Number);
  const wanted = kind === 'induction' ? SHOWN : 1;
  if (inputs.length !== wanted || new Set(inputs).size !== wanted)
    return { fault: `has ${inputs.length} inputs, not ${wanted} different ones` };
  if (!inputs.every((x) => PROBES.includes(x)))
    return { fault: `has an input that is not from ${PROBES[0]} to ${PROBES.at(-1)}` };
  return { program, inputs };
}

type Outputs = number[] | { fault: string };

/** Programs whose outputs are kept: more than a step has tasks and proposals. */
const MOST_KEPT = 2_000;
const kept = new Map<string, Promise<Outputs>>();

/**
 * What a program gives for each input, in QuickJS: small whole numbers, and the same when it is run again. All samples of a task
 * are held against one program, so what was asked last is not run anew.
 */
export async function outputsOf(
  source: string,
  inputs: readonly number[],
  signal: AbortSignal,
): Promise<Outputs> {
  signal.throwIfAborted();
  const asked = `${source} for ${inputs.join(', ')}`;
  const outputs = kept.get(asked) ?? begin(asked, source, inputs);
  // The newest is the last, and the first one goes.
  kept.delete(asked);
  kept.set(asked, outputs);
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value!);
  return untilAborted(uncounted(signal, outputs), signal);
}

/** Only outputs stay: a sandbox may fail once, and a busy machine may be too slow for a program once. */
function begin(asked: string, source: string, inputs: readonly number[]): Promise<Outputs> {
  const outputs = ranTwice(source, inputs);
  const forget = () => kept.get(asked) === outputs && kept.delete(asked);
  outputs.then((given) => 'fault' in given && forget(), forget);
  return outputs;
}

async function ranTwice(source: string, inputs: readonly number[]): Promise<Outputs> {
  // Others may wait for it when the first one no longer does.
  const { signal } = new AbortController();
  const run = { source, name: 'f', calls: inputs.map((x) => [x]) };
  const [once, again] = [await runFunction(run, signal), await runFunction(run, signal)];
  if (once.kind === 'compile-error') return { fault: once.message };
  if (JSON.stringify(once) !== JSON.stringify(again)) return { fault: 'it does not give the same each time' };
  const outputs: number[] = [];
  for (const [i, end] of once.results.entries()) {
    if (end.kind === 'error') return { fault: `it ends in ${end.message} for ${inputs[i]}` };
    const value = end.kind === 'value' ? end.value : undefined;
    if (typeof value !== 'number' || !Number.isInteger(value) || Math.abs(value) > LARGEST)
      return { fault: `it gives no whole number up to ${LARGEST} for ${inputs[i]}` };
    outputs.push(value);
  }
  return outputs;
}

/** Whether an answer solves a task: its program, or that of the answer, is run. */
export async function solves(
  kind: Kind,
  { program, inputs }: ProgramTask,
  answer: string | null,
  signal: AbortSignal,
): Promise<boolean> {
  const text = (answer ?? '').trim();
  const source = writeProgram(program);
  const wantedOf = async (asked: readonly number[]): Promise<number[]> => {
    const wanted = await outputsOf(source, asked, signal);
    if (!('fault' in wanted)) return wanted;
    // It gave what it gives when the task was made, so this says nothing of the answer.
    throw new GradusError('infra', 'sandbox-failed', `${source} ${wanted.fault}`, { retryable: true });
  };
  if (kind === 'induction') {
    const own = readProgram(text);
    if ('fault' in own) return false;
    const given = await outputsOf(writeProgram(own), PROBES, signal);
    return !('fault' in given) && JSON.stringify(given) === JSON.stringify(await wantedOf(PROBES));
  }
  if (!WHOLE_NUMBER.test(text)) return false;
  const value = Number(text);
  const wanted = await wantedOf(inputs);
  if (kind === 'deduction') return value === wanted[0];
  if (!isNamed(value)) return false;
  const given = await outputsOf(source, [value], signal);
  return !('fault' in given) && given[0] === wanted[0];
}

/** What an answer comes down to: its number, or what its program gives for all probes; null: it is neither. */
export function saidBy(kind: Kind, answer: string | null): string | null {
  const text = (answer ?? '').trim();
  if (kind !== 'induction') return WHOLE_NUMBER.test(text) ? String(Number(text) + 0) : null;
  const own = readProgram(text);
  return 'fault' in own ? null : behaviourOf(own);
}
