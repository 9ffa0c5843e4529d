import { parseQuery } from './query.ts';
import type { Query } from './query.ts';

const TARGET = 'Q';
/** Of what stands between; more than any question has. */
const UNKNOWNS = 'ABCDEFGHIJKLMNOP'.split('');

/**
 * A formal question in plain words, a sentence a projection, those first that others build on:
 * `A is a guest of Bake. Q is a pupil of A. Q is a rival of Timo or Dalu. List every Q.`
 * Throws GradusError('environment', 'query') for what is no formal question.
 */
export function tell(formal: string): string {
  const sentences: string[] = [];
  const unknowns = UNKNOWNS.values();

  /** A word for the members of a set; what is to be known of it is told before. */
  const worded = (query: Query): string => {
    if (query.kind === 'name') return query.name;
    if (query.kind === 'or') return query.parts.map(worded).join(' or ');
    const subject = constantIn(query) ?? unknowns.next().value!;
    describe(subject, query);
    return subject;
  };
  const describe = (subject: string, query: Query): void => {
    if (query.kind === 'and') {
      for (const part of query.parts) describe(subject, part);
      return;
    }
    const said = phrase(query);
    if (said !== subject) sentences.push(`${subject} is ${said}.`);
  };
  const phrase = (query: Query): string => {
    if (query.kind === 'of') return `a ${query.relation} of ${worded(query.operand)}`;
    if (query.kind !== 'or') return worded(query);
    // A name that came after a projection would be taken for an operand of it.
    const parts = query.parts.toSorted((a, b) => Number(a.kind === 'of') - Number(b.kind === 'of'));
    return parts.map(phrase).join(' or ');
  };

  describe(TARGET, parseQuery(formal));
  return inOrderOfMention(`${sentences.join(' ')} List every ${TARGET}.`);
}

/** The first unknown that is read of is A. */
function inOrderOfMention(text: string): string {
  const letters = new Map<string, string>();
  return text.replace(/\b[A-P]\b/gu, (unknown) => {
    const letter = letters.get(unknown) ?? UNKNOWNS[letters.size]!;
    letters.set(unknown, letter);
    return letter;
  });
}

/** Whose constant it is of which more is said: an intersection with a name. */
function constantIn(query: Query): string | undefined {
  if (query.kind === 'name') return query.name;
  return query.kind === 'and' ? (constantIn(query.parts[0]) ?? constantIn(query.parts[1])) : undefined;
}
