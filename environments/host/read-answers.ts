import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Json } from '../../core/json/json.ts';
import { SPLITS } from '../../core/refs.ts';
import type { Demonstration, Proposed, Task, TierFinding, Varied, Verdict } from '../contract/environment.ts';
import type { ActedFully, SessionEnd } from '../contract/session.ts';
import { cutText } from './facts.ts';
import { readImages } from './images.ts';
import type { SentImage } from './images.ts';

// What users' functions return is anything: here it becomes what they promised, or a message that says what it was.

/** Longest text that is kept with an episode or a verdict, in characters. */
const LONGEST_EVIDENCE = 4000;
/** Longest prompt, and longest demonstration as JSON, in characters. */
const LONGEST_TEXT = 1_000_000;
/** Longest text that an answer comes down to, in characters; of a longer one the digest tells as much. */
const LONGEST_CANONICAL = 256;
/** Longest subject of a tier's verdict, as JSON: it passes through histories. */
const LONGEST_SUBJECT = 64_000;
/** Longest state of a fold, and longest last word of a session, as JSON: each call of each episode carries it. */
const LONGEST_STATE = 64_000;
/** Longest proposal that is accepted, with its names, as JSON: references to it lie in prompts and sources. */
const LONGEST_PROPOSAL = 4_600;
const LONGEST_SNAPSHOT = 1_000_000;

const evidence = z.string().transform((text) => cutText(text, LONGEST_EVIDENCE));
const canonical = z
  .string()
  .transform((text) =>
    text.length <= LONGEST_CANONICAL ? text : createHash('sha256').update(text).digest('hex'),
  );
const score = z.number().min(0).max(1);
const deviation = z.number().min(0);
const usd = z.number().min(0);

const verdictShape = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('score'),
    score,
    uncertainty: deviation.exactOptional(),
    steps: z.array(score).exactOptional(),
    canonical: canonical.exactOptional(),
    evidence: evidence.exactOptional(),
  }),
  z.object({ kind: z.literal('abstain'), reason: evidence, canonical: canonical.exactOptional() }),
]);

const findingShape = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('scored'),
    score,
    uncertainty: deviation.exactOptional(),
    evidence: evidence.exactOptional(),
    usd: usd.exactOptional(),
  }),
  z.object({
    kind: z.literal('measured'),
    values: z.record(z.string(), z.number()),
    uncertainties: z.record(z.string(), deviation).exactOptional(),
    evidence: evidence.exactOptional(),
    usd: usd.exactOptional(),
  }),
  z.object({
    kind: z.literal('abstained'),
    type: z.string().max(100),
    reason: evidence,
    evidence: evidence.exactOptional(),
    usd: usd.exactOptional(),
  }),
]);

const taskShape = z.object({ prompt: z.string().max(LONGEST_TEXT) });

const json = z.json() as unknown as z.ZodType<Json>;
const demonstrationShape = z.object({
  turns: z.array(
    z.object({
      think: z.string().exactOptional(),
      call: z.object({ name: z.string(), arguments: json }).exactOptional(),
      calls: z
        .array(z.object({ name: z.string(), arguments: json, observation: z.string().exactOptional() }))
        .min(2)
        .exactOptional(),
      answer: z.string().exactOptional(),
      raw: z.string().exactOptional(),
      observation: z.string().exactOptional(),
    }),
  ),
  weight: z.number(),
});

/** A text that says what was wrong with it, where it was. */
export type Read<T> = { value: T } | { fault: string };

/** A verdict of a candidate with so many turns. */
export function readVerdict(answer: unknown, turns: number): Read<Verdict> {
  const given = answer as { kind?: unknown; score?: unknown; steps?: unknown } | null | undefined;
  if (given?.kind === 'score' && !score.safeParse(given.score).success) {
    return { fault: `said ${show(given.score)}, which is no score in [0, 1]` };
  }
  // Before each is looked at: there may be any number of them.
  if (given?.kind === 'score' && Array.isArray(given.steps) && given.steps.length !== turns) {
    return { fault: `scored ${given.steps.length} steps of an episode of ${turns} turns` };
  }
  return read(verdictShape, answer, 'verdict');
}

export const readFinding = (answer: unknown): Read<TierFinding> => read(findingShape, answer, 'finding');

/** Only what Gradus itself reads of a task is checked; `info` is between the environment and its verifiers. */
export function readTask(answer: unknown): Read<Task> {
  const task = read(taskShape, answer, 'task');
  return 'fault' in task ? task : { value: answer as Task };
}

const reason = evidence;
const proposedShape = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('accepted'), proposal: json, canonical, like: canonical }),
  z.object({ kind: z.literal('invalid'), reason }),
  z.object({ kind: z.literal('malformed'), reason }),
  z.object({ kind: z.literal('set-aside'), reason }),
]);

export function readProposed(answer: unknown): Read<Proposed> {
  const proposed = read(proposedShape, answer, 'proposal');
  return 'fault' in proposed ? proposed : withinSize(proposed.value, LONGEST_PROPOSAL, 'proposal');
}

const variedShape = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('task'), proposal: json, canonical, split: z.enum(SPLITS) }),
  z.object({ kind: z.literal('none'), reason }),
]);

export function readVaried(answer: unknown): Read<Varied> {
  const varied = read(variedShape, answer, 'variation');
  return 'fault' in varied ? varied : withinSize(varied.value, LONGEST_PROPOSAL, 'variation');
}

/** The environment's own words; null: it has none. */
export const readHint = (answer: unknown): Read<string | null> => read(evidence.nullable(), answer, 'hint');

export function readDemonstration(answer: unknown): Read<Demonstration> {
  const demonstration = read(demonstrationShape, answer, 'demonstration');
  if ('fault' in demonstration) return demonstration;
  if (demonstration.value.turns.length === 0) return { fault: 'gave a demonstration without turns' };
  return withinSize(demonstration.value, LONGEST_TEXT, 'demonstration');
}

const actedShape = z.object({
  text: z.string(),
  refused: z.boolean().exactOptional(),
  reward: z.number().exactOptional(),
  done: z.boolean().exactOptional(),
});

/** What a call did, as it leaves the hands of whoever did it. */
export type Did = Omit<ActedFully, 'images'> & { images?: SentImage[] };

export function readActed(answer: unknown): Read<Did> {
  if (typeof answer === 'string') return { value: { text: answer } };
  if (typeof answer !== 'object' || answer === null || !('images' in answer) || answer.images === undefined) {
    return read(actedShape, answer, 'observation');
  }
  // Megabytes, which no message should show.
  const { images, ...rest } = answer;
  const did = read(actedShape, rest, 'observation');
  if ('fault' in did) return did;
  const shown = readImages(images);
  return 'fault' in shown ? shown : { value: { ...did.value, images: shown.value } };
}

const endShape = z.object({ reward: z.number().exactOptional(), info: json.exactOptional() });

export function readEnd(answer: unknown): Read<SessionEnd> {
  const end = read(endShape, answer, 'end of an episode');
  return 'fault' in end ? end : withinSize(end.value, LONGEST_STATE, 'last word');
}

export const readSessionState = (answer: unknown): Read<Json> => readJson(answer, LONGEST_STATE, 'state');
export const readSnapshot = (answer: unknown): Read<Json> => readJson(answer, LONGEST_SNAPSHOT, 'snapshot');

function readJson(answer: unknown, limit: number, what: string): Read<Json> {
  const value = read(json, answer, what);
  return 'fault' in value ? value : withinSize(value.value, limit, what);
}

export const readSubject = (answer: unknown): Read<Json> => readJson(answer, LONGEST_SUBJECT, 'subject');

function withinSize<T>(value: T, limit: number, what: string): Read<T> {
  const { length } = JSON.stringify(value);
  return length <= limit
    ? { value }
    : { fault: `gave a ${what} of ${length} characters as JSON; at most ${limit} are taken` };
}

function read<T>(shape: z.ZodType<T>, answer: unknown, what: string): Read<T> {
  const parsed = shape.safeParse(answer);
  if (parsed.success) return { value: parsed.data };
  const { path, message } = parsed.error.issues[0]!;
  const where = path.length === 0 ? '' : `${path.join('.')}: `;
  return { fault: `gave ${show(answer)}, which is no ${what} (${where}${message})` };
}

function show(value: unknown): string {
  if (value === undefined || typeof value === 'number') return String(value);
  try {
    return cutText(JSON.stringify(value) ?? typeof value, 100);
  } catch {
    return typeof value;
  }
}
