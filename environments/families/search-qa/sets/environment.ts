import { z } from 'zod';
import { GradusError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json/json.ts';
import type { Split } from '../../../../core/refs.ts';
import { defineEnvironment, defineTool, ToolRefusal } from '../../../contract/environment.ts';
import type { PlainEnvironment, Task } from '../../../contract/environment.ts';
import { randomOf } from '../../../contract/generated-tasks.ts';
import { setExactMatch, setF1 } from '../../../verifiers/answer-set.ts';
import { formatVerifier } from '../../../verifiers/format.ts';
import { toolShaping } from '../../../verifiers/tool-shaping.ts';
import { makeQuestion } from './expand.ts';
import type { Expansion } from './expand.ts';
import { LEVELS, levelOf } from './levels.ts';
import type { Level } from './levels.ts';
import { openPeople, PASSAGES, peopleOf } from './people.ts';
import { printQuery } from './query.ts';
import { searchesFor } from './searches.ts';
import { tell } from './tell.ts';

/** Longest query, characters. */
const LONGEST_QUERY = 200;
/** Of both environments: at the same coordinates they begin with the same seed question. */
const FAMILY = 'search-qa-sets';

const search = defineTool({
  name: 'search',
  description: 'Finds facts about people that have the words of a query, the best first.',
  arguments: z.strictObject({
    query: z.string().max(LONGEST_QUERY).describe('What to look for, like pupil of Bake'),
  }),
  placement: 'inline',
  effect: 'pure',
  cost: { seconds: 0, usd: 0 },
  run: async ({ query }, context) => searched(query, (await context.task()).ref.split),
});

/** What a search answers. Throws ToolRefusal for a query without words. */
export function searched(query: string, split: Split): string {
  if (!/[\p{L}\p{N}]/u.test(query)) throw new ToolRefusal('no words to look for');
  const found = peopleOf(split).index.search(query, PASSAGES);
  return found.length === 0 ? 'nothing found' : found.map(({ text }) => text).join('\n');
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
    version: 'tasks 2',
    levels: LEVELS.map(({ level }) => level),
    tools: [search],
    verifiers: [setExactMatch(answersOf), setF1(answersOf), formatVerifier(), toolShaping()],
    task: (ref) => {
      const random = randomOf({ ...ref, environment: FAMILY });
      const people = peopleOf(ref.split);
      const { query, answers } = makeQuestion(people, shapeOf(name, ref.level), expansion, random);
      const formal = printQuery(query);
      return {
        ref,
        prompt: tell(formal),
        answer: answers.join(', '),
        calls: searchesFor(query, people.whoIs).map((text) => ({
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
    taskCount: () => Infinity,
    prepare: openPeople,
  });
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
