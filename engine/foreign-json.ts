import type { Json } from '../core/json/json.ts';
import { isDeeperThan } from '../core/json/levels.ts';

/** A model's files have some ten levels of objects and lists. */
const MOST_LEVELS = 64;

/** What is in a JSON file of somebody else's model. Throws Error in words for what is no JSON, or nested deeper than a file of a model is. */
export function parseForeignJson(bytes: Uint8Array): Json {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  if (isDeeperThan(MOST_LEVELS, text)) throw new Error(`it has more than ${MOST_LEVELS} levels`);
  return JSON.parse(text) as Json;
}

/** Longest reason that names what a file says, characters. */
const LONGEST_REASON = 500;

/** What is said of a file, with what it says itself: names and values are somebody else's, and may have megabytes. */
export const inBrief = (what: string): string =>
  what.length <= LONGEST_REASON ? what : `${what.slice(0, LONGEST_REASON)}… (${what.length} characters)`;
