import { RandomStream } from '../../../../core/random.ts';
import { SPLITS, type Split } from '../../../../core/refs.ts';
import { inTurns, type InPieces } from '../../../../engine/in-pieces.ts';
import { splitOfProblem } from '../../../contract/generated-tasks.ts';
import { Bm25, type Passage } from '../bm25.ts';
import { RELATIONS } from './query.ts';
import type { Relation, WhoIs } from './query.ts';

/** People of a split, what is known of them, and a search through it. Each split has its own, with other names. */
export interface People {
  names: readonly string[];
  /** Each is of one a pupil, of one a guest, and so on. */
  whose: (relation: Relation, name: string) => string;
  whoIs: WhoIs;
  /** One passage for all who stand in a relation to somebody, in an order that says nothing: `pupil of Bake: Timo, Dalu.` */
  passages: readonly Passage[];
  index: Bm25;
}

/** Of two of these is a name: 4,096, in which 64 tokens suffice to write them all. */
const SYLLABLES = 'bdfgklmnprstvwzh'
  .split('')
  .flatMap((consonant) => 'aeio'.split('').map((vowel) => consonant + vowel));
/** At most so many people stand in one relation to one person. */
export const MOST_OF_ONE = 3;
/** People between two turns of the event loop. */
const PIECE = 500;

/** Of both environments. */
export const FAMILY = 'search-qa-sets';

let opened: Promise<Record<Split, People>> | undefined;
let known: Record<Split, People> | undefined;

/** Makes the facts and their index, once a process. */
export async function openPeople(): Promise<void> {
  opened ??= makeAll();
  known = await opened;
}

export function peopleOf(split: Split): People {
  if (known === undefined) throw new Error('there are no people yet: await openPeople() first');
  return known[split];
}

async function makeAll(): Promise<Record<Split, People>> {
  const names: Record<Split, string[]> = { train: [], heldout: [], test: [] };
  for (const first of SYLLABLES)
    for (const second of SYLLABLES) {
      const name = first[0]!.toUpperCase() + first.slice(1) + second;
      names[splitOfProblem(FAMILY, name)].push(name);
    }
  const made: Partial<Record<Split, People>> = {};
  for (const split of SPLITS) made[split] = await inTurns(makePeople(split, names[split]));
  return made as Record<Split, People>;
}

function* makePeople(split: Split, names: readonly string[]): InPieces<People> {
  const random = new RandomStream(FAMILY, 'people', split);
  const facts: { who: string; relation: Relation; of: string }[] = [];
  const whose = new Map<string, string>();
  const whoIs = new Map<string, string[]>();
  for (const relation of RELATIONS)
    for (const [i, who] of names.entries()) {
      let of = random.pick(names);
      while (of === who || whoIs.get(`${relation} of ${of}`)?.length === MOST_OF_ONE) of = random.pick(names);
      whoIs.set(`${relation} of ${of}`, [...(whoIs.get(`${relation} of ${of}`) ?? []), who]);
      facts.push({ who, relation, of });
      whose.set(`${relation} ${who}`, of);
      if (i % PIECE === 0) yield;
    }
  random.shuffle(facts);
  // Found in the order in which a search shows them.
  whoIs.clear();
  for (const { who, relation, of } of facts)
    whoIs.set(`${relation} of ${of}`, [...(whoIs.get(`${relation} of ${of}`) ?? []), who]);
  // A list for each of whom there is somebody; its title is what a search for it is called.
  const passages = [...whoIs].map(([title, who]): Passage => ({
    title,
    text: `${title}: ${who.join(', ')}.`,
  }));
  return {
    names,
    whose: (relation, name) => whose.get(`${relation} ${name}`)!,
    whoIs: (relation, name) => whoIs.get(`${relation} of ${name}`) ?? [],
    passages,
    index: yield* Bm25.of(passages),
  };
}
