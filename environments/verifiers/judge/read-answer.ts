import type { Judge, JudgeAnswer } from './options.ts';

export type ReadAnswer =
  | { kind: 'vote'; score: number; reason: string }
  | { kind: 'abstained'; type: 'unreadable' | 'out-of-range'; reason: string };

/** Longer reasons are cut, characters: five of them are evidence that must stay below 4 KB. */
const LONGEST = 500;

/**
 * The judge's answer out of what it wrote: the text itself, or the one object in it that conforms. Two that differ are
 * no answer, because one of them may be quoted from the attempt.
 */
export function readAnswer(text: string, schema: Judge['schema']): ReadAnswer {
  const whole = parsed(text);
  // Reasoning models whose server does not take their thoughts out think aloud first.
  const objects = whole === undefined ? objectsIn(text.split('</think>').at(-1)!) : [whole];
  const answers = new Map<number, JudgeAnswer>();
  let outside: number | undefined;
  for (const object of objects) {
    const { data } = schema.safeParse(object);
    const score = data?.score ?? (object as { score?: unknown } | null)?.score;
    if (typeof score === 'number' && !(score >= 0 && score <= 1)) outside = score;
    else if (data !== undefined) answers.set(data.score, data);
  }
  if (answers.size > 1) return unreadable('it wrote several answers with different scores');
  if (outside !== undefined) {
    return {
      kind: 'abstained',
      type: 'out-of-range',
      reason: `it gave the score ${outside}, which is not in [0, 1]`,
    };
  }
  const [answer] = answers.values();
  if (answer === undefined) return unreadable('it wrote no JSON object that conforms to the schema');
  return { kind: 'vote', score: answer.score, reason: (answer.reason ?? '').slice(0, LONGEST) };
}

const unreadable = (reason: string): ReadAnswer => ({ kind: 'abstained', type: 'unreadable', reason });

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Times that the text may be read over, looking for objects: an answer needs two, a flood of braces one for each. */
const MOST_READINGS = 16;

/**
 * The outermost objects in a text, however it is fenced: each opening brace to the first closing one that parses. What
 * takes longer than reading the text a few times over is no answer.
 */
function objectsIn(text: string): unknown[] {
  const found: unknown[] = [];
  let left = MOST_READINGS * text.length;
  for (let start = text.indexOf('{'); start !== -1;) {
    const end = closing(text, start);
    left -= (end === -1 ? text.length : end) - start;
    if (left < 0) return [];
    const object = end === -1 ? undefined : parsed(text.slice(start, end + 1));
    if (object !== undefined) found.push(object);
    start = text.indexOf('{', object === undefined ? start + 1 : end);
  }
  return found;
}

/** Where the brace at `start` is closed, with braces in strings left out; -1 if nowhere. */
function closing(text: string, start: number): number {
  let depth = 0;
  let quoted = false;
  for (let i = start; i < text.length; i++) {
    const character = text[i];
    if (quoted && character === '\\') i++;
    else if (character === '"') quoted = !quoted;
    else if (!quoted && character === '{') depth++;
    else if (!quoted && character === '}' && --depth === 0) return i;
  }
  return -1;
}
