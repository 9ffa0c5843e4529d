import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { GradusError } from '../../../../core/errors.ts';
import { commandLine } from '../../../../core/installation.ts';
import type { TaskRef } from '../../../../core/refs.ts';
import { inTurns } from '../../../../engine/in-pieces.ts';
import { defineEnvironment, defineTool, ToolRefusal } from '../../../contract/environment.ts';
import type { Environment, Task } from '../../../contract/environment.ts';
import { formatVerifier } from '../../../verifiers/format.ts';
import { squadExactMatch, squadF1 } from '../../../verifiers/squad.ts';
import { toolShaping } from '../../../verifiers/tool-shaping.ts';
import { Bm25 } from '../bm25.ts';
import { LEVELS, SHOWN } from './chains.ts';
import type { ChainQuestion, ChainQuestions } from './chains.ts';
import { CONTENT, corpusFactsOf, folderOf, MADE_BY } from './files.ts';
import type { CorpusContent, CorpusName } from './files.ts';

/** Longest query, characters. */
const LONGEST_QUERY = 200;
const SET_UP = commandLine('setup corpora');

/**
 * Questions of one or two hops (its level) about a corpus that was set up, with a search through it: `search-qa-foldoc`,
 * the Free On-line Dictionary of Computing, and `search-qa-python`, Python's library reference.
 */
export function searchCorpusEnvironment(corpus: CorpusName, what: string): Environment {
  const name = `search-qa-${corpus}`;
  const facts = corpusFactsOf(corpus);
  let opened: Promise<Opened> | undefined;
  let there: Opened | undefined;
  const found = (): Opened => {
    if (there) return there;
    throw missing(name, what);
  };
  const questionAt = ({ split, level, index }: TaskRef): ChainQuestion => {
    const question = found().questions[split][LEVELS.indexOf(level as 1)]?.[index];
    if (question) return question;
    throw new GradusError(
      'environment',
      'task',
      `${name} has no task ${index} at level ${level} of ${split}`,
    );
  };
  const searched = (query: string): string => {
    if (!/[\p{L}\p{N}]/u.test(query)) throw new ToolRefusal('no words to look for');
    const passages = found().index.search(query, SHOWN);
    return passages.map(({ title, text }) => `${title}: ${text}`).join('\n') || 'nothing found';
  };
  const search = defineTool({
    name: 'search',
    description: `Finds passages of ${what} that have the words of a query, the best first.`,
    arguments: z.strictObject({ query: z.string().max(LONGEST_QUERY).describe('What to look for') }),
    placement: 'inline',
    effect: 'pure',
    cost: { seconds: 0, usd: 0 },
    run: ({ query }) => searched(query),
  });
  const answersOf = ({ info }: Task): readonly string[] => (info as { answers: string[] }).answers;
  return defineEnvironment({
    name,
    ...(facts && { version: `${facts.source} ${facts.sha256.slice(0, 16)}, tasks ${MADE_BY}` }),
    levels: [...LEVELS],
    tools: [search],
    verifiers: [squadExactMatch(answersOf), squadF1(answersOf), formatVerifier(), toolShaping()],
    task: (ref) => {
      const { prompt, queries, answers } = questionAt(ref);
      return {
        ref,
        prompt,
        answer: answers[0]!,
        calls: queries.map((query) => ({ name: search.name, arguments: { query } })),
        info: { answers: [...answers] },
      };
    },
    demonstrate: ({ answer, calls }) => ({
      turns: [...calls!.map((call) => ({ call })), { answer: answer! }],
      weight: 1,
    }),
    taskCount: (split, level) => {
      if (facts) return facts.counts[split][LEVELS.indexOf(level as 1)]!;
      throw missing(name, what);
    },
    prepare: async () => {
      opened ??= open(corpus, () => missing(name, what));
      try {
        there = await opened;
      } catch (error) {
        opened = undefined;
        throw error;
      }
    },
    needs: async () => [{ what, present: corpusFactsOf(corpus) !== undefined, setUp: SET_UP }],
  });
}

interface Opened {
  index: Bm25;
  questions: ChainQuestions;
}

async function open(corpus: CorpusName, absent: () => GradusError): Promise<Opened> {
  if (!corpusFactsOf(corpus)) throw absent();
  const json = await readFile(path.join(folderOf(corpus), CONTENT), 'utf8');
  const { passages, questions } = JSON.parse(json) as CorpusContent;
  return { index: await inTurns(Bm25.of(passages)), questions };
}

const missing = (name: string, what: string): GradusError =>
  new GradusError('environment', 'not-set-up', `${name} needs ${what}: run "${SET_UP}", then start again`);
