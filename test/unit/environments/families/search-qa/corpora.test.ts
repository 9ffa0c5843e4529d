import { describe, expect, test } from 'vitest';
import type { Environment } from '../../../../../environments/contract/environment.ts';
import { hostedHere } from '../../../../../environments/host/hosted-environment.ts';
import { Bm25 } from '../../../../../environments/families/search-qa/bm25.ts';
import { makeChains, passageOf } from '../../../../../environments/families/search-qa/corpora/chains.ts';
import type { Corpus } from '../../../../../environments/families/search-qa/corpora/entry.ts';
import { searchCorpusEnvironment } from '../../../../../environments/families/search-qa/corpora/environment.ts';
import { corpusFactsOf } from '../../../../../environments/families/search-qa/corpora/files.ts';
import { readFoldoc } from '../../../../../environments/families/search-qa/corpora/foldoc.ts';
import { readPythonDocs } from '../../../../../environments/families/search-qa/corpora/python-docs.ts';
import { normalizeSquad } from '../../../../../environments/verifiers/squad.ts';
import { inTurns } from '../../../../../engine/in-pieces.ts';
import { SPLITS } from '../../../../support/ready-environments.ts';

const factsIn = (corpus: Corpus): string[] =>
  corpus.entries.flatMap(({ names, facts }) =>
    facts.map(({ relation, mention, to }) =>
      [names[0], relation, mention, to === undefined ? '' : corpus.entries[to]!.names[0]].join(' | '),
    ),
  );

describe('the dictionary of computing', () => {
  const DICTIONARY = [
    [
      'Fast Foo\nFF',
      '<language> (FF) A concurrent {dialect} of {Foo} written by {Ada Smith}\nin 1966.  See also {slow bars}.\n\n(1995-01-16)',
    ],
    ['Foo', '<language> A {functional language} developed at Hill, which was made by {Bob}.'],
    ['foo bar', '{Foo}'],
    ['slow bar', '1. A {dialect} of {Foo}.  2. A place.'],
    ['bar host', '<networking> A {bar} host that a {Foo} has.'],
  ]
    .map(([names, text]) => `${names}\n\n   ${text!.replaceAll('\n', '\n   ')}\n`)
    .join('\n');

  test('gives what fixed turns of phrase say of an entry with one meaning, and nothing more', () => {
    expect(factsIn(readFoldoc(DICTIONARY))).toEqual([
      'Fast Foo | maker | Ada Smith | ',
      'Fast Foo | also | slow bars | slow bar',
      'Foo | kind | functional language | ',
      'foo bar | see | Foo | Foo',
    ]);
  });
});

describe("Python's library reference", () => {
  const FILE = [
    '.. module:: heaps',
    '   :synopsis: Heaps.',
    '',
    '.. exception:: Empty',
    '',
    '   Subclass of :exc:`LookupError`, for heaps without items.',
    '',
    '.. class:: Heap(items)',
    '   :noindex:',
    '',
    '   .. method:: Heap.pop()',
    '               Heap.get()',
    '',
    '      Like :meth:`~Heap.peek`, and takes it away. Raises',
    '      :exc:`Empty` if there is none.',
    '',
    '      Raises :exc:`TypeError` never.',
    '',
    '   .. method:: Heap.peek()',
    '',
    '      If there is none, :exc:`Empty` is raised; :exc:`ValueError` is raised, too.',
  ].join('\n');

  test('gives what the first paragraph of an entry says with one reference', () => {
    const corpus = readPythonDocs([FILE]);
    expect(factsIn(corpus)).toEqual([
      'Empty | subclass | LookupError | ',
      'Empty | module | heaps | ',
      'Heap.pop | like | Heap.peek | Heap.peek',
      'Heap.pop | raises | Empty | Empty',
      'Heap.pop | module | heaps | ',
      'Heap.peek | module | heaps | ',
    ]);
    expect(corpus.entries[1]!.text).toBe(
      'method of the module heaps: Heap.pop(). Like Heap.peek, and takes it away. Raises Empty if there is none.',
    );
  });

  test('questions follow facts from passage to passage', async () => {
    const corpus = readPythonDocs([FILE]);
    const passages = corpus.entries.map(passageOf);
    const made = await inTurns(makeChains(corpus, passages, await inTurns(Bm25.of(passages))));
    const twoHops = SPLITS.flatMap((split) => made[split][1]!);
    expect(twoHops).toContainEqual({
      prompt: 'Heap.pop raises the exception A. A is a subclass of B. What is B?',
      queries: ['Heap.pop', 'Empty'],
      answers: ['LookupError'],
    });
  });

  test('what has several right answers is not asked', async () => {
    const described = (module: string, name: string): string =>
      [`.. module:: ${module}`, '', `.. function:: ${name}(x)`, '', '   Raises :exc:`Full`, maybe.'].join(
        '\n',
      );
    const corpus = readPythonDocs([
      described('heaps', 'push'),
      described('stacks', 'push'),
      described('stacks', 'peek'),
      described('stacks', 'join'),
      described('heaps', 'Heap.join'),
    ]);
    const passages = corpus.entries.map(passageOf);
    const made = await inTurns(makeChains(corpus, passages, await inTurns(Bm25.of(passages))));
    const asked = SPLITS.flatMap((split) => made[split][0]!.map(({ prompt }) => prompt));
    expect(asked).not.toContain('push is in the module A. What is A?');
    // By its short name the method is called so, too.
    expect(asked).not.toContain('join is in the module A. What is A?');
    expect(asked).toContain('Heap.join is in the module A. What is A?');
    expect(asked).toContain('push raises the exception A. What is A?');
    expect(asked).toContain('peek is in the module A. What is A?');
  });
});

const corpora = ['foldoc', 'python'] as const;
for (const corpus of corpora) {
  if (!corpusFactsOf(corpus))
    console.warn(`SKIPPED: tests of search-qa-${corpus} need npm run setup:corpora`);
}

describe.each(corpora.map((corpus) => ({ corpus })))('search-qa-$corpus', ({ corpus }) => {
  const environment: Environment = searchCorpusEnvironment(corpus, 'the corpus');
  const there = corpusFactsOf(corpus) !== undefined;

  test.skipIf(there)('says how it is set up where it is not', async () => {
    expect(() => environment.taskCount('train', 1)).toThrow('npm run setup:corpora');
    await expect(environment.prepare!()).rejects.toThrow('npm run setup:corpora');
  });

  test.skipIf(!there)(
    'a prompt has one answer, no answer is in two splits, and passages say the answers',
    async () => {
      await environment.prepare!();
      const splitOf = new Map<string, string>();
      const answerTo = new Map<string, string>();
      const hosted = hostedHere(environment);
      const { signal } = new AbortController();
      for (const split of SPLITS) {
        for (const level of environment.levels) {
          const count = environment.taskCount(split, level);
          expect(count).toBeGreaterThan(20);
          for (let index = 0; index < count; index++) {
            const ref = { environment: environment.name, split, level, index };
            const task = await environment.task(ref);
            const answer = normalizeSquad(task.answer!);
            expect(splitOf.get(answer) ?? split, answer).toBe(split);
            splitOf.set(answer, split);
            expect(answerTo.get(task.prompt) ?? answer, task.prompt).toBe(answer);
            answerTo.set(task.prompt, answer);
            if (index > 10) continue;
            const last = task.calls!.at(-1)!;
            const context = { idempotencyKey: 'x', attempt: 1, signal, session: { ref, id: 'x', acts: [] } };
            const { observation } = await hosted.call(last, context);
            expect(observation.text, JSON.stringify(task)).toContain(task.answer);
          }
        }
      }
    },
  );
});
