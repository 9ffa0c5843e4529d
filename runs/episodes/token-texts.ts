import type { CheckpointRef } from '../../core/refs.ts';
import { Tokenizer } from '../../engine/tokenizer/tokenizer.ts';
import { loadModelFiles, textOf } from '../../store/training/checkpoints.ts';
import { findCheckpoints } from '../../store/training/find-checkpoints.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';

/** Says what tokens are. */
export interface TokenTexts {
  /** The text that each adds to those before it: a character of several tokens is with the last of them. */
  textsOf(ids: readonly number[]): string[];
}

/** A tokenizer of 150,000 tokens takes some hundred megabytes. */
const MOST_TOKENIZERS = 3;

/**
 * What the tokens of runs are, by the newest checkpoint that is left of them: training changes no tokenizer. Kept from one
 * question to the next, as long as there are few.
 */
export class TokenizersOfRuns {
  private readonly known = new Map<string, Promise<TokenTexts | null>>();
  private readonly store: ObjectStore;

  constructor(store: ObjectStore) {
    this.store = store;
  }

  /** null where no checkpoint is left. Throws what the store throws, and what a damaged tokenizer does. */
  async of(run: string): Promise<TokenTexts | null> {
    const { checkpoints } = await findCheckpoints(this.store, run);
    const newest = checkpoints.at(-1);
    if (!newest) return null;
    const digest = newest.manifest.files['tokenizer.json'].sha256;
    const found = this.known.get(digest) ?? this.open(newest.ref);
    this.known.delete(digest);
    this.known.set(digest, found);
    for (const oldest of this.known.keys()) {
      if (this.known.size <= MOST_TOKENIZERS) break;
      this.known.delete(oldest);
    }
    try {
      return await found;
    } catch (error) {
      this.known.delete(digest);
      throw error;
    }
  }

  private async open(ref: CheckpointRef): Promise<TokenTexts> {
    const tokenizer = Tokenizer.fromJson(textOf(await loadModelFiles(this.store, ref), 'tokenizer.json'));
    return { textsOf: (ids) => textsOf(tokenizer, ids) };
  }
}

/** The last so many tokens decide what the next one adds. */
const CONTEXT = 8;
/** Tokens that end in the middle of a character, one behind the other: more are no text, and each is decoded with them all. */
const MOST_PENDING = 64;

/** What each token adds to the text of those before it; together they are the text of all. */
export function textsOf(tokenizer: Pick<Tokenizer, 'decode'>, ids: readonly number[]): string[] {
  const texts: string[] = [];
  /** Before it everything is told, and no character is half there. */
  let from = 0;
  /** Characters behind it that are told. */
  let reported = 0;
  for (let at = 0; at < ids.length; at++) {
    const before = ids.slice(Math.max(0, from - CONTEXT), from);
    const prefix = tokenizer.decode(before);
    const text = tokenizer.decode([...before, ...ids.slice(from, at + 1)]);
    const behind = text.startsWith(prefix)
      ? text.slice(prefix.length)
      : tokenizer.decode(ids.slice(from, at + 1));
    // What a token has begun of a character, the next one ends: it may have begun another one by then.
    const isWhole = !behind.endsWith('\ufffd') || at + 1 - from >= MOST_PENDING || at === ids.length - 1;
    const known = isWhole ? behind.length : behind.length - 1;
    texts.push(behind.slice(reported, known));
    reported = isWhole ? 0 : Math.max(reported, known);
    if (isWhole) from = at + 1;
  }
  return texts;
}
