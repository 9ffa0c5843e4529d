import { z } from 'zod';
import { GradusError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json/json.ts';
import type { Split, TaskRef } from '../../../../core/refs.ts';
import { defineEnvironment, defineTool, ToolRefusal } from '../../../contract/environment.ts';
import type { PlainEnvironment, Task } from '../../../contract/environment.ts';
import { randomOf } from '../../../contract/generated-tasks.ts';
import { setExactMatch, setF1 } from '../../../verifiers/answer-set.ts';
import { formatVerifier } from '../../../verifiers/format.ts';
import { toolShaping } from '../../../verifiers/tool-shaping.ts';
import { wordsOf, type Passage } from '../bm25.ts';
import { makeQuestion } from './expand.ts';
import type { Expansion, FormalQuestion } from './expand.ts';
import { EACH_ONCE, questionOnce } from './once.ts';
import { LEVELS, levelOf } from './levels.ts';
import type { Level } from './levels.ts';
import { FAMILY, openPeople, peopleOf } from './people.ts';
import { printQuery } from './query.ts';
import { searchesFor } from './searches.ts';
import { tell } from './tell.ts';

/** Longest query, characters. */
const LONGEST_QUERY = 200;
/** Of the best passages so many are looked at for the list that is asked for. */
const BEST = 4;

const search = defineTool({
  name: 'search',
  description: 'Shows the list of people that a query names.',
  arguments: z.strictObject({
    query: z.string().max(LONGEST_QUERY).describe('What to look for, like pupil of Bake'),
  }),
  placement: 'inline',
  effect: 'pure',
  cost: { seconds: 0, usd: 0 },
  run: async ({ query }, context) => searched(query, (await context.task()).ref.split),
});

/** The list whose title the query has in it, in whatever order; another one would mislead. Throws ToolRefusal for a query without words. */
export function searched(query: string, split: Split): string {
  if (!/[\p{L}\p{N}]/u.test(query)) throw new ToolRefusal('no words to look for');
  const asked = new Set(wordsOf(query));
  const isAsked = ({ title }: Passage): boolean => wordsOf(title).every((word) => asked.has(word));
  return peopleOf(split).index.search(query, BEST).find(isAsked)?.text ?? 'nothing found';
}

/**
 * Questions that are sets, made in a formal form first (WebShaper, Tao et al. 2025, arXiv 2507.15061), about people who are
 * generated, and a search through the facts: `search-qa-sets`, which grow layer by layer, and `search-qa-sets-random`.
 */
export function searchSetsEnvironment(expansion: Expansion): PlainEnvironment {
  const name = expansion === 'layer-wise' ? FAMILY : `${FAMILY}-${expansion}`;
  const answersOf = ({ info }: Task): readonly string[] => (info as { answers: string[] }).answers;
  return defineEnvironment({
    name,
    version: 'tasks 4',
    levels: LEVELS.map(({ level }) => level),
    tools: [search],
    verifiers: [setExactMatch(answersOf), setF1(answersOf), formatVerifier(), toolShaping()],
    task: (ref) => {
      const { query, answers } = questionAt({ ...ref, environment: name }, expansion);
      const formal = printQuery(query);
      return {
        ref,
        prompt: tell(formal),
        answer: answers.join(', '),
        calls: searchesFor(query, peopleOf(ref.split).whoIs).map((text) => ({
          name: search.name,
          arguments: { query: text },
        })),
        info: { formal, answers: [...answers] } satisfies Json,
      };
    },
    demonstrate: ({ ref, answer, calls }) => ({
      turns: [
        ...calls!.map((call) => ({
          call,
          observation: searched((call.arguments as { query: string }).query, ref.split),
        })),
        { answer: answer! },
      ],
      weight: 1,
    }),
    taskCount: (split) => (split === 'train' ? Infinity : EACH_ONCE),
    prepare: openPeople,
  });
}

/** At the same coordinates both environments begin with the same seed question. */
function questionAt({ environment, ...at }: TaskRef, expansion: Expansion): FormalQuestion {
  const { split, level, index } = at;
  const shape = shapeOf(environment, level);
  if (split === 'train')
    return makeQuestion(peopleOf(split), shape, expansion, randomOf({ ...at, environment: FAMILY }));
  if (!Number.isSafeInteger(index) || index < 0 || index >= EACH_ONCE)
    throw new GradusError(
      'environment',
      'task',
      `${environment} has no task ${index} at level ${level} of ${split}: indexes are whole numbers from 0 to ${EACH_ONCE - 1}.`,
    );
  return questionOnce(split, shape, index)[expansion];
}

function shapeOf(name: string, level: number): Level {
  const shape = levelOf(level);
  if (shape !== undefined) return shape;
  throw new GradusError(
    'environment',
    'task',
    `${name} has no level ${level}; levels are ${LEVELS.map((one) => one.level).join(', ')}.`,
  );
}
