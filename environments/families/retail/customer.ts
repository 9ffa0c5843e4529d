import { canonicalJson } from '../../../core/json/canonical-json.ts';
import type { Json } from '../../../core/json/json.ts';
import { customerOf, type Goal, type CustomerWish } from './goal.ts';
import type { Write } from './shop.ts';

/** What the customer has in mind while the conversation goes on. */
export interface Mood {
  /** How many of her wishes she has come to. */
  uttered: number;
  /** Wishes that cannot be, of which she has been told. */
  accepted: readonly number[];
  /** Whether she was told that something cannot be with an order of hers with which she wants nothing that cannot be. */
  misled: boolean;
  /** Writes that she has said yes to, by `writeKey`. */
  consented: readonly string[];
  /** How often she was offered what she does not want, or told that what can be cannot. */
  annoyed: number;
}

export const FIRST_MOOD: Mood = { uttered: 1, accepted: [], misled: false, consented: [], annoyed: 0 };

/** Wrong offers and wrong denials after which she leaves: what she wants is to be asked and looked up, not guessed. */
export const PATIENCE = 3;

/** The same for two writes that do the same. */
export const writeKey = (write: { name: string; arguments: Json }): string =>
  canonicalJson([write.name, write.arguments]);

/**
 * What she says to a message, by rules. She agrees to a write when the message names it and all that belongs to it, and
 * nothing else that it could be; only what she wants. `done` are the writes that were made.
 */
export function reply(
  goal: Goal,
  mood: Mood,
  done: readonly string[],
  message: string,
): { mood: Mood; text: string; left?: boolean } {
  const isFulfilled = ({ write }: CustomerWish, i: number): boolean =>
    write === null ? mood.accepted.includes(i) : done.includes(writeKey(write));
  const open = goal.wishes.findIndex((wish, i) => !isFulfilled(wish, i));
  const wish = goal.wishes[open];

  const denied = deniedOrder(goal, message);
  if (wish?.write === null && mood.uttered > open && denied === wish.order) {
    const accepted = { ...mood, accepted: [...mood.accepted, open] };
    const then = goal.wishes.findIndex((one, i) => i !== open && !isFulfilled(one, i));
    return next(goal, accepted, then < 0 ? goal.wishes.length : then);
  }
  const offer = withoutReports(message, done);
  // By the same words as what she accepts, or saying it of one order after the other would find the right one.
  const misleads =
    denied !== undefined && !goal.wishes.some(({ order }) => order === denied) && !isWritten(done, denied);
  if (misleads || isOffer(goal, offer)) {
    const wanted = goal.wishes.find(
      ({ write }) => write !== null && !done.includes(writeKey(write)) && offers(goal, offer, write),
    );
    if (wanted !== undefined) {
      const consented = [...new Set([...mood.consented, writeKey(wanted.write!)])];
      return { mood: { ...mood, consented }, text: 'yes' };
    }
    // Nobody told her yet that it cannot be.
    if (wish?.write === null && mentions(offer, wish.order!)) return { mood, text: 'yes' };
    const worse = { ...mood, misled: mood.misled || misleads, annoyed: mood.annoyed + 1 };
    return worse.annoyed >= PATIENCE
      ? { mood: worse, text: 'No. Goodbye.', left: true }
      : { mood: worse, text: 'No, that is not what I want.' };
  }
  const asked = askedFor(goal, message);
  if (asked !== undefined) return { mood, text: asked };
  if (wish === undefined) return { mood, text: 'That is all, thank you.' };
  return next(goal, mood, open);
}

/** She comes to a wish, or says again what she wants. */
function next(goal: Goal, mood: Mood, wish: number): { mood: Mood; text: string } {
  if (wish >= goal.wishes.length) return { mood, text: 'That is all, thank you.' };
  return { mood: { ...mood, uttered: Math.max(mood.uttered, wish + 1) }, text: goal.wishes[wish]!.said };
}

/** What she knows of herself, where a message asks for it. */
function askedFor(goal: Goal, message: string): string | undefined {
  if (!message.includes('?')) return undefined;
  const { name, email, zip } = customerOf(goal);
  const known: [RegExp, string][] = [
    [/\be-?mail\b/iu, email],
    [/\bzip\b|\bpost(?:al )?code\b/iu, `${name}, ${zip}`],
    [/\bname\b|\bwho\b/iu, name],
  ];
  return known.find(([asks]) => asks.test(message))?.[1];
}

const NOT = /\b(?:not|cannot|unable|impossible|\w+n['’]t)\b/iu;
/** Other ways to say that something cannot be. An offer may have them, so they do not count there. */
const DENIALS: readonly RegExp[] = [
  NOT,
  /\b(?:nothing|never|no longer|too late)\b/iu,
  /\bagainst (?:\w+ )*(?:polic|rule)/iu,
  /\balready (?:been )?(?:shipped|delivered|sent|on its way|on the way)\b/iu,
  /\bonly\b.*\bpending\b|\bpending\b.*\bonly\b/iu,
];
/** What she does not want is no denial of it. */
const UNWANTED = /\b(?:not|\w+n['’]t|no longer) (?:want|need|like)\b(?! to\b)/giu;

/** The order with which a message says that something cannot be: one alone, as a list of them tells her nothing. */
function deniedOrder({ shop }: Goal, message: string): string | undefined {
  const text = message.replace(UNWANTED, '');
  if (!DENIALS.some((denial) => denial.test(text))) return undefined;
  const [order, ...others] = shop.orders.filter(({ id }) => mentions(message, id));
  return others.length === 0 ? order?.id : undefined;
}

/** By what words a write is recognized. */
const VERBS: Record<Write['name'], RegExp> = {
  cancel_order: /\bcancel/iu,
  return_item: /\breturn/iu,
  exchange_item: /\b(?:exchang|swap)/iu,
  change_item: /\b(?:chang|modif|replac|switch)/iu,
  // An order that is shipped or delivered is so: these are words for a change where they go on with an address.
  change_address: /\b(?:send|ship(?!ped)|deliver(?!ed)|(?:shipped|delivered) to\b|address)/iu,
  change_payment: /\b(?:pay|charg)/iu,
  change_account_address: /\b(?:account|profile)/iu,
};
/** Of these a message has one at most, or nobody knows what it offers. */
const DISTINCT: readonly Write['name'][] = [
  'cancel_order',
  'return_item',
  'exchange_item',
  'change_account_address',
];

/** A message offers to do something if it is about an order or the account and has a word for it. */
function isOffer({ shop }: Goal, message: string): boolean {
  const isAbout =
    shop.orders.some(({ id }) => mentions(message, id)) || VERBS.change_account_address.test(message);
  return isAbout && Object.values(VERBS).some((verb) => verb.test(message));
}

const sentencesOf = (message: string): string[] => message.split(/(?<=[.!?])\s+/u);

const writesOf = (done: readonly string[]) =>
  done.map((key) => JSON.parse(key) as [Write['name'], Record<string, string>]);

/** Whether an order was changed: a word about it may be a report. */
const isWritten = (done: readonly string[], id: string): boolean =>
  writesOf(done).some(([, { order }]) => order === id);

/** A message but for the sentences, no questions, that say what was done: those are no offers. */
function withoutReports(message: string, done: readonly string[]): string {
  const made = writesOf(done);
  const isReport = (sentence: string): boolean =>
    !sentence.endsWith('?') &&
    made.some(
      ([name, { order }]) => VERBS[name].test(sentence) && (order === undefined || mentions(sentence, order)),
    );
  return sentencesOf(message)
    .filter((sentence) => !isReport(sentence))
    .join(' ');
}

function offers({ shop, catalogue }: Goal, message: string, write: Write): boolean {
  if (!VERBS[write.name].test(message)) return false;
  // Where the change itself is denied; elsewhere it may be what she does not want.
  const denied = sentencesOf(message).filter((sentence) => NOT.test(sentence));
  if (denied.some((sentence) => VERBS[write.name].test(sentence))) return false;
  if (DISTINCT.some((other) => other !== write.name && VERBS[other].test(message))) return false;
  const values: readonly string[] = Object.values(write.arguments);
  if (!values.every((value) => mentions(message, value))) return false;
  // An order that is changed as a whole may be named with its items.
  const own =
    'order' in write.arguments && !('item' in write.arguments)
      ? shop.orders.find(({ id }) => id === (write.arguments as { order: string }).order)!.items
      : [];
  const allowed = [...values, ...own.map(({ id }) => id)];
  const others = [
    ...('payment' in write.arguments ? shop.customers.flatMap(({ payments }) => payments) : []),
    ...shop.orders.flatMap(({ id, items }) => [id, ...items.map((item) => item.id)]),
    ...catalogue.flatMap(({ variants }) => variants.map(({ id }) => id)),
  ];
  return others.every((one) => allowed.includes(one) || !mentions(message, one));
}

/** Whether a message has these words as a whole, in any case. */
function mentions(message: string, words: string): boolean {
  const plain = (text: string): string =>
    ` ${text
      .toLowerCase()
      .replace(/[^\p{L}\p{N}$]+/gu, ' ')
      .trim()} `;
  return plain(message).includes(plain(words));
}
