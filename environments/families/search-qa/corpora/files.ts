import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { cacheEntry, cacheRoot } from '../../../../infra/cache-dir.ts';
import type { Passage } from '../bm25.ts';
import type { ChainQuestions } from './chains.ts';

// What `npm run setup:corpora` leaves in the cache: corpora are downloaded, not carried along.

/** Changes when the same package gives other passages or questions. */
export const MADE_BY = '2';

export type CorpusName = 'foldoc' | 'python';

export const folderOf = (corpus: CorpusName): string =>
  cacheEntry(cacheRoot(), { name: `search-qa-${corpus}`, version: MADE_BY });

/** Read before anything else is loaded. */
const factsShape = z.object({
  /** The package that it is from, and its SHA-256. */
  source: z.string(),
  sha256: z.string(),
  /** Questions by split and level. */
  counts: z.record(z.enum(['train', 'heldout', 'test']), z.array(z.int())),
});
export type CorpusFacts = z.infer<typeof factsShape>;

/** What there is to search and to ask. */
export interface CorpusContent {
  passages: Passage[];
  questions: ChainQuestions;
}

export const FACTS = 'facts.json';
export const CONTENT = 'content.json';

/** undefined where it is not set up. */
export function corpusFactsOf(corpus: CorpusName): CorpusFacts | undefined {
  let json: string;
  try {
    json = readFileSync(path.join(folderOf(corpus), FACTS), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  return factsShape.parse(JSON.parse(json));
}
