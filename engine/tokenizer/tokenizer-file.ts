import { readableSteps } from './steps.ts';
import type { TokenizerStep } from './steps.ts';

/** The fields of a `tokenizer.json` that are looked at here. */
export interface TokenizerFile {
  added_tokens: { id: number; content: string }[];
  normalizer: TokenizerStep | null;
  pre_tokenizer: TokenizerStep | null;
  decoder: TokenizerStep | null;
  model: BpeModel | UnigramModel | WordLevelModel;
}

interface BpeModel {
  type: 'BPE';
  vocab: Readonly<Record<string, number>>;
  merges: readonly (readonly [string, string])[] | readonly string[];
  unk_token?: string | null;
  continuing_subword_prefix?: string | null;
}

/** Each pre-token is a token, or unknown. */
interface WordLevelModel {
  type: 'WordLevel';
  vocab: Readonly<Record<string, number>>;
  unk_token: string;
}

interface UnigramModel {
  type: 'Unigram';
  /** Pieces with their log-probabilities, in the order of their ids. */
  vocab: readonly (readonly [string, number])[];
  unk_id: number;
}

/** What decoders index by, and masks are made for: a vocabulary has some hundred thousand. */
const MOST_IDS = 10_000_000;
/** At each place of a text every piece that begins there is tried, and every added token compared. */
const LONGEST_PIECE = 128;
const LONGEST_ADDED = 1024;

/**
 * A parsed `tokenizer.json` that can be used: everything that its tables name is there, an id stands for one token, and
 * its steps can be taken (`readableSteps`). What is wrong would else show as ids that are not there, or text that is lost. Throws Error that says what is wrong where.
 */
export function tokenizerFile(json: unknown): TokenizerFile {
  if (!isRecord(json)) throw new Error('it is no object');
  const { model, ids } = modelOf(json['model']);
  const added = addedTokensOf(json['added_tokens'], ids);
  if (model.type === 'BPE') assertUnknownToken(model, added);
  const [normalizer, preTokenizer, decoder] = ['normalizer', 'pre_tokenizer', 'decoder'].map((field) =>
    readableSteps(field, (json[field] ?? null) as TokenizerStep | null),
  ) as [TokenizerStep | null, TokenizerStep | null, TokenizerStep | null];
  return { ...json, model, added_tokens: added, normalizer, pre_tokenizer: preTokenizer, decoder };
}

/** A model, with the ids of its tokens. */
interface WithIds<Model = TokenizerFile['model']> {
  model: Model;
  ids: ReadonlyMap<string, number>;
}

function modelOf(model: unknown): WithIds {
  if (!isRecord(model)) throw new Error('it has no model');
  // Files of before 2020 do not say so, and the Python library goes by what there is, too.
  const { type = 'merges' in model ? 'BPE' : undefined } = model;
  if (type === 'BPE') return bpe({ ...model, type } as BpeModel);
  if (type === 'Unigram') return unigram(model as unknown as UnigramModel);
  if (type === 'WordLevel') return wordLevel(model as unknown as WordLevelModel);
  throw new Error(`model.type is ${JSON.stringify(type)}; it can be "BPE", "Unigram" or "WordLevel"`);
}

function wordLevel(model: WordLevelModel): WithIds<WordLevelModel> {
  const { vocab, unk_token: unknown } = model;
  if (!isRecord(vocab)) throw new Error('model.vocab is no map of tokens to ids');
  const ids = new Map(Object.entries(vocab));
  assertIds(ids.values());
  if (typeof unknown !== 'string' || !ids.has(unknown)) {
    throw new Error(
      `model.unk_token is ${JSON.stringify(unknown)}, which is no token: other text would have no ids`,
    );
  }
  return { model, ids };
}

function bpe(model: BpeModel): WithIds<BpeModel> {
  const { vocab, merges, continuing_subword_prefix: prefix } = model;
  if (!isRecord(vocab)) throw new Error('model.vocab is no map of tokens to ids');
  // Going through a large object is slow, and done once.
  const ids = new Map(Object.entries(vocab));
  assertIds(ids.values());
  if (!Array.isArray(merges)) throw new Error('model.merges is no list');
  if (typeof prefix === 'string' && prefix !== '') {
    throw new Error(`model.continuing_subword_prefix is ${JSON.stringify(prefix)}, which is not supported`);
  }
  const pairs = Array.isArray(merges[0]);
  for (const [i, merge] of merges.entries()) {
    const parts: unknown = pairs || typeof merge !== 'string' ? merge : merge.split(' ');
    if (!Array.isArray(parts) || parts.length !== 2 || pairs !== Array.isArray(merge)) {
      throw new Error(`model.merges[${i}] is no pair of tokens`);
    }
    const [left, right] = parts as [string, string];
    if (ids.has(left) && ids.has(right) && ids.has(left + right)) continue;
    const missing = [left, right, left + right].find((token) => !ids.has(token));
    throw new Error(`model.merges[${i}] names ${JSON.stringify(missing)}, which model.vocab does not have`);
  }
  return { model, ids };
}

function unigram(model: UnigramModel): WithIds<UnigramModel> {
  const { vocab, unk_id: unknown } = model;
  if (!Array.isArray(vocab)) throw new Error('model.vocab is no list of pieces');
  for (const [i, entry] of vocab.entries()) {
    const [piece, score] = Array.isArray(entry) ? (entry as unknown[]) : [];
    if (typeof piece !== 'string' || piece.length > LONGEST_PIECE || !Number.isFinite(score)) {
      throw new Error(
        `model.vocab[${i}] is no piece of at most ${LONGEST_PIECE} characters with its log-probability`,
      );
    }
  }
  if (!Number.isInteger(unknown) || vocab[unknown] === undefined) {
    throw new Error(
      `model.unk_id is ${JSON.stringify(unknown)}, which is no piece of the ${vocab.length}: other text would have no ids`,
    );
  }
  return { model, ids: new Map(vocab.map(([piece], id) => [piece, id])) };
}

function addedTokensOf(added: unknown, ids: WithIds['ids']): TokenizerFile['added_tokens'] {
  if (added === undefined || added === null) return [];
  if (!Array.isArray(added)) throw new Error('added_tokens is no list');
  for (const [i, token] of added.entries()) {
    const content: unknown = isRecord(token) ? token['content'] : undefined;
    if (typeof content !== 'string' || content.length > LONGEST_ADDED) {
      throw new Error(`added_tokens[${i}] has no content of at most ${LONGEST_ADDED} characters`);
    }
  }
  const tokens = added as TokenizerFile['added_tokens'];
  assertIds(tokens.map(({ id }) => id));
  // Plain text that has such an id would be read as the added token.
  const byId = new Map(tokens.map(({ id, content }) => [id, content]));
  for (const [token, id] of ids) {
    const content = byId.get(id);
    if (content === undefined || content === token) continue;
    throw new Error(
      `the id ${id} is that of the added token ${JSON.stringify(content)} and of ${JSON.stringify(token)} in model.vocab`,
    );
  }
  return tokens;
}

function assertUnknownToken(
  { vocab, unk_token: unknown }: BpeModel,
  added: readonly { content: string }[],
): void {
  if (unknown === undefined || unknown === null) return;
  if (Object.hasOwn(vocab, unknown) || added.some(({ content }) => content === unknown)) return;
  throw new Error(`model.unk_token is ${JSON.stringify(unknown)}, which is no token`);
}

/** Throws Error for what is no id of a token, and would reach the decoder as a row of the embeddings, and for one that two have. */
function assertIds(ids: Iterable<unknown>): void {
  const seen = new Set<unknown>();
  for (const id of ids) {
    if (!Number.isInteger(id) || (id as number) < 0 || (id as number) >= MOST_IDS) {
      throw new Error(`a token has the id ${JSON.stringify(id)}`);
    }
    if (seen.has(id)) throw new Error(`two tokens have the id ${String(id)}`);
    seen.add(id);
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
