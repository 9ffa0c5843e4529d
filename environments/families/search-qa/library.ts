import { inTurns } from '../../../engine/in-pieces.ts';
import { Bm25, type Passage } from './bm25.ts';
import { makeQuestions, type Questions } from './questions.ts';
import { readNouns } from './wordnet.ts';

/** What is searched, and what is asked about it. */
export interface Library {
  index: Bm25;
  questions: Questions;
}

let opened: Promise<Library> | undefined;
let library: Library | undefined;

/** Reads WordNet and makes index and questions of it: about 3 s and 200 MB, once a process. */
export async function openLibrary(): Promise<void> {
  opened ??= read();
  try {
    library = await opened;
  } catch (error) {
    opened = undefined;
    throw error;
  }
}

export function theLibrary(): Library {
  if (library === undefined) throw new Error('WordNet is not read: await openLibrary() first');
  return library;
}

async function read(): Promise<Library> {
  const nouns = await readNouns();
  const passages = new Map<string, Passage>();
  for (const { id, names, gloss } of nouns.values())
    passages.set(id, { title: names.join(', '), text: gloss });
  const index = await inTurns(Bm25.of([...passages.values()]));
  return { index, questions: await inTurns(makeQuestions(nouns, passages, index)) };
}
