import type { Corpus, Entry, Fact } from './entry.ts';

// The Free On-line Dictionary of Computing, https://foldoc.org, editor Denis Howe (GFDL), as Debian's dict-foldoc has it: a
// head of one or more lines at the margin, its text indented, cross references in braces. Relations are read from fixed
// turns of phrase at a cross reference, in the first sentence of entries with one meaning.

const SAID: Corpus['said'] = {
  kind: 'is a kind of',
  dialect: 'is a dialect of',
  version: 'is a version of',
  extension: 'is an extension of',
  subset: 'is a subset of',
  superset: 'is a superset of',
  variant: 'is a variant of',
  successor: 'is a successor of',
  predecessor: 'is a predecessor of',
  implementation: 'is an implementation of',
  opposite: 'is the opposite of',
  maker: 'was made by',
  see: 'is explained under',
  also: 'says to see also',
};
const RELATION_OF: Readonly<Record<string, string>> = {
  type: 'kind',
  form: 'kind',
  variation: 'variant',
  derivative: 'variant',
  descendant: 'successor',
};
const NOUNS = [...Object.keys(SAID), ...Object.keys(RELATION_OF)].filter(
  (noun) => !['maker', 'see', 'also'].includes(noun),
);

/** Words before what is described: none of them begins a phrase of its own. */
const QUALIFIED = String.raw`(?:(?!(?:of|for|with|from|to|in|on|by|where|that|which|and|or)\b)[\w'-]+ |\{[^}]*\} )`;
/** The cross reference is all of the noun: what comes next begins something else. */
const NOUN_ENDS = String.raw`(?=$|[,.:;(]| (?:for|used|which|that|from|by|in|with|on|at|designed|developed|written|where|based|built|adding|extended|without|and|or)\b)`;
const KIND = new RegExp(String.raw`^An? ${QUALIFIED}{0,2}\{([^}]+)\}${NOUN_ENDS}`, 'u');
const DERIVED = new RegExp(
  String.raw`^(?:An?|The) ${QUALIFIED}{0,3}(${NOUNS.join('|')}) (?:of|to) (?:the |an? )?\{([^}]+)\}${NOUN_ENDS}`,
  'u',
);
const MADE = new RegExp(
  String.raw`^[^,;:]*?\b(?:developed|written|designed|produced|created|invented|manufactured|published|introduced|built) by (?:the )?\{([^}]+)\}${NOUN_ENDS}`,
  'u',
);
/** A clause of its own, of which something else may be the subject. */
const CLAUSE = /\b(?:which|that|where|who|while|using|and)\b/u;
/** To one other entry alone. */
const ALSO = /\bSee also \{([^}]+)\}\./u;
const SEE = /^(?:See )?\{([^}]+)\}\.?$/u;

/** Of `foldoc.dict`, uncompressed. */
export function readFoldoc(dictionary: string): Corpus {
  const heads: { names: string[]; text: string }[] = [];
  let [names, body]: [string[], string[]] = [[], []];
  const finish = (): void => {
    const text = body.join(' ').replaceAll(/\s+/gu, ' ').trim();
    if (names.length > 0 && text !== '' && !names[0]!.startsWith('00-database')) heads.push({ names, text });
    [names, body] = [[], []];
  };
  for (const line of dictionary.split('\n')) {
    if (!/^\S/u.test(line)) {
      body.push(line);
      continue;
    }
    if (body.some((one) => one.trim() !== '')) finish();
    names.push(line.trim());
  }
  finish();

  const places = new Map<string, number>();
  for (const [place, head] of heads.entries()) {
    for (const name of head.names) {
      const key = name.toLowerCase();
      if (!places.has(key)) places.set(key, place);
    }
  }
  /** A reference may be in the plural. */
  const placeOf = (mention: string): number | undefined =>
    places.get(mention.toLowerCase()) ?? places.get(mention.toLowerCase().replace(/s$/u, ''));
  const entries = heads.map(({ names: all, text }): Entry => ({
    names: all,
    text: withoutBraces(text),
    facts: factsOf(text).map((fact) => ({ ...fact, to: placeOf(fact.mention) })),
  }));
  return { entries, said: SAID };
}

function factsOf(text: string): Fact[] {
  // Several meanings under one head: it does not say of which one.
  if (/^(?:<[^>]*> )?1\. /u.test(text)) return [];
  // Its field and its other names stand before the definition, the date of its last change after it.
  const definition = text.replace(/^(?:<[^>]*> )?(?:\([^)]*\) )?/u, '').replace(/ \(\d{4}-\d\d-\d\d\)$/u, '');
  const facts: Fact[] = [];
  const add = (relation: string, mention: string, evidence: string): void =>
    void facts.push({ relation, mention, evidence: withoutBraces(evidence) });
  const see = SEE.exec(definition);
  if (see) add('see', see[1]!, see[0]);
  const [first] = definition.split(/(?<=[a-z0-9}")])\. (?=[A-Z"[{(])/u);
  const derived = DERIVED.exec(first!);
  const kind = derived ? null : KIND.exec(first!);
  if (derived) add(RELATION_OF[derived[1]!] ?? derived[1]!, derived[2]!, derived[0]);
  if (kind) add('kind', kind[1]!, kind[0]);
  const made = MADE.exec(first!);
  if (made && !CLAUSE.test(made[0])) add('maker', made[1]!, made[0]);
  const also = ALSO.exec(definition);
  if (also) add('also', also[1]!, also[0]);
  return facts;
}

const withoutBraces = (text: string): string => text.replaceAll(/[{}]/gu, '');
