import type { Corpus, Entry, Fact } from './entry.ts';

// The library reference of Python (PSF licence), from the reStructuredText that Debian's python3-doc has beside its pages:
// what a directive describes (`.. function:: bisect_left(a, x)`) is an entry, with its first paragraph. Relations are read
// from fixed turns of phrase at a reference (`:exc:`ValueError``), where the paragraph has only one of the kind.

const SAID: Corpus['said'] = {
  module: 'is in the module',
  like: 'is described as like',
  subclass: 'is a subclass of',
  returns: 'returns an instance of',
  raises: 'raises the exception',
  instead: 'is documented with the advice to use instead',
};

const DIRECTIVE =
  /^( *)\.\. (function|class|exception|method|classmethod|staticmethod|data|attribute|decorator):: *(.+)$/u;
const MODULE = /^\.\. (?:module|currentmodule):: (\S+)/u;
/** `:func:`~os.path.join``: what it refers to, without the marks. */
const referenceTo = (roles: string): string => String.raw`:(?:${roles}):` + '`[~!.]*([\\w.]+)(?:\\(\\))?`';
const ANY = 'func|meth|class|data|attr|exc';
const PHRASES: readonly [string, RegExp][] = [
  [
    'like',
    new RegExp(
      String.raw`\b(?:[Ll]ike|[Ss]ame as|[Ss]imilar to|[Ee]quivalent to|[Aa]lias (?:of|for)|[Ss]horthand for) (?:the )?${referenceTo(ANY)}`,
      'gu',
    ),
  ],
  ['subclass', new RegExp(String.raw`\b[Ss]ubclass of ${referenceTo('exc|class')}`, 'gu')],
  ['returns', new RegExp(String.raw`^Returns? (?:an? |the )?(?:new )?${referenceTo('class')}`, 'gu')],
  ['raises', new RegExp(String.raw`\b[Rr]aises? (?:an? |the )?${referenceTo('exc')}`, 'gu')],
  ['raises', new RegExp(String.raw`${referenceTo('exc')} (?:exception )?(?:is|will be) raised`, 'gu')],
  ['instead', new RegExp(String.raw`\b[Uu]se (?:the )?${referenceTo(ANY)} instead`, 'gu')],
];

interface Described {
  module: string | null;
  kind: string;
  /** As it is written there: `bisect_left`, `date.today`. */
  name: string;
  signature: string;
  paragraph: string;
}

/** Of the files of the library reference (`library/*.rst.txt`). */
export function readPythonDocs(files: readonly string[]): Corpus {
  const described = files.flatMap(describedIn);
  const places = new Map<string, number | null>();
  const put = (key: string, place: number): void => void places.set(key, places.has(key) ? null : place);
  for (const [place, one] of described.entries()) {
    for (const name of new Set([one.name, one.name.split('.').at(-1)!, qualified(one)])) put(name, place);
  }
  /** In the same class or module first, then anywhere if it is the only one of its name. */
  const placeOf = (mention: string, { module, name }: Described): number | undefined => {
    const owner = name.split('.').slice(0, -1).join('.');
    const tries = [`${module}.${owner}.${mention}`, `${owner}.${mention}`, `${module}.${mention}`, mention];
    return tries.map((one) => places.get(one)).find((place) => typeof place === 'number');
  };
  const entries = described.map((one): Entry => {
    const { module, kind, name, signature, paragraph } = one;
    const facts = [
      ...factsOf(paragraph).map((fact) => ({ ...fact, to: placeOf(fact.mention, one) })),
      ...(module === null
        ? []
        : [{ relation: 'module', mention: module, evidence: `of the module ${module}` }]),
    ];
    const short = name.split('.').at(-1)!;
    return {
      names: [...new Set([name, short, qualified(one)])],
      text: `${kind} ${module === null ? '' : `of the module ${module}: `}${signature}. ${plain(paragraph)}`,
      facts: facts.filter(({ mention }) => mention !== name && mention !== short),
    };
  });
  return { entries, said: SAID };
}

const qualified = ({ module, name }: Described): string =>
  module === null || name.startsWith(`${module}.`) ? name : `${module}.${name}`;

function describedIn(file: string): Described[] {
  const lines = file.split('\n');
  const found: Described[] = [];
  let module: string | null = null;
  for (let i = 0; i < lines.length; i++) {
    module = MODULE.exec(lines[i]!)?.[1] ?? module;
    const [, margin, kind, signature] = DIRECTIVE.exec(lines[i]!) ?? [];
    if (margin === undefined) continue;
    const isInside = (line: string | undefined): boolean =>
      line !== undefined && line.trim() !== '' && line.search(/\S/u) > margin.length;
    let at = i + 1;
    while (isInside(lines[at])) at++; // Other signatures, and options.
    while (lines[at]?.trim() === '') at++;
    const from = at;
    while (isInside(lines[at]) && !lines[at]!.trim().startsWith('..')) at++;
    const paragraph = lines.slice(from, at).join(' ').replaceAll(/\s+/gu, ' ').trim();
    const name = signature!.replace(/[(\s].*$/u, '');
    if (paragraph !== '' && /^[\w.]+$/u.test(name)) {
      found.push({ module, kind: kind!, name, signature: signature!.trim(), paragraph });
    }
  }
  return found;
}

function factsOf(paragraph: string): Fact[] {
  const facts: Fact[] = [];
  for (const relation of Object.keys(SAID)) {
    const matches = PHRASES.filter(([of]) => of === relation).flatMap(([, phrase]) => [
      ...paragraph.matchAll(phrase),
    ]);
    const [match] = matches;
    if (match && new Set(matches.map(([, mention]) => mention)).size === 1)
      facts.push({ relation, mention: match[1]!, evidence: plain(match[0]) });
  }
  return facts;
}

/** Without the marks of reStructuredText. */
const plain = (text: string): string =>
  text
    .replaceAll(/:[\w:]+:`[~!.]*([^`<]*?)(?: ?<[^>]*>)?`/gu, '$1')
    .replaceAll(/`+([^`]*)`+_*/gu, '$1')
    .replaceAll(/\*+([^*\s][^*]*)\*+/gu, '$1')
    .replace(/::$/u, ':');
