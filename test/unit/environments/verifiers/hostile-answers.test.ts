import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Action } from '../../../../core/episode/episode.ts';
import type { Json } from '../../../../core/json/json.ts';
import type {
  Candidate,
  Environment,
  FastVerifier,
  Task,
} from '../../../../environments/contract/environment.ts';
import { readVerdict } from '../../../../environments/host/read-answers.ts';
import { builtInEnvironments } from '../../../../environments/families/index.ts';
import { bad, call, candidateOf, says } from './candidates.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

// An abstention counts nowhere, so who can bring a verifier to throw, or to take longer than it may, has a place to hide.

const { signal } = new AbortController();

/** Characters of a long answer; a policy may write several times as much. */
const LONG = 65_536;
/**
 * Processor time of one verdict on a long answer, milliseconds. What grows with the square of the length takes seconds,
 * what does not takes some ten milliseconds, a few times as much where the machine is busy.
 */
const MOST_MS = 1000;

/** What is short, and what grows out of bounds where it is looked at from each of its places. */
const PIECES = [' ', '\n', '\u0000', 'a ', 'the ', 'T1 '].concat(
  '0 9 . , - ( [ { } \\ \\boxed{ \\frac{1} \\text{ C C( # % 1. $1 ½ ﷺ \u0301 \u0301\u0323 \u{1d7d8} \u{1f468}\u200d'.split(
    ' ',
  ),
);
const ODD = ['', ' '].concat(
  'NaN Infinity -Infinity 1e999 -0 1/0 0.(9) \\frac{1}{0} \\boxed{} ١٢ null __proto__ constructor'.split(' '),
  '<script> * [Fe] [*] C~C [H][H] c1ccccc1c [2H] %%'.split(' '),
);
const piece = fc.constantFrom(...PIECES);
const LONG_ANSWERS = PIECES.flatMap((one) => {
  const many = one.repeat(LONG / one.length);
  return [many, `0.${many}1`, `x${many}x`];
});
const short = fc.oneof(
  fc.constantFrom(...ODD),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({ unit: fc.constantFrom(...'CNOcno()[]=#123%+-.@/\\HlBr*'.split('')), maxLength: 40 }),
  fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join('')),
);

const deep = (levels: number): Json => (levels === 0 ? 0 : [deep(levels - 1)]);
const args = fc.oneof(
  fc.constantFrom<Json>({}, { x: deep(90) }, JSON.parse('{"__proto__": {"a": 1}}') as Json, {
    expression: '',
  }),
  fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>, {
    maxKeys: 4,
  }),
);

const actionsOf = ({ tools }: Environment): fc.Arbitrary<Action[]> => {
  const name = fc.oneof(fc.constantFrom('nothing', '__proto__', ...tools.map((tool) => tool.name)), short);
  const turn = fc.oneof(
    fc.tuple(name, args).map(([tool, given]) => call(tool, given)),
    fc.constant(bad),
  );
  return fc
    .tuple(fc.array(turn, { maxLength: 6 }), fc.option(short.map(says), { nil: undefined }))
    .map(([turns, answer]) => [...turns, ...(answer ? [answer] : [])]);
};

/** What is measured is of the whole process: what took long counts where it does so each time. */
async function spoken(verifier: FastVerifier, candidate: Candidate, tries = 5): Promise<string> {
  const before = process.cpuUsage();
  const read = readVerdict(await verifier.verify(candidate, { signal }), candidate.episode.turns.length);
  const { user } = process.cpuUsage(before);
  if ('fault' in read) return read.fault;
  if (user / 1000 <= MOST_MS) return read.value.kind;
  return tries > 1 ? spoken(verifier, candidate, tries - 1) : `took ${user / 1000} ms`;
}

/** One after the other, so that none is measured with others. */
async function allSpoken(verifiers: readonly FastVerifier[], candidate: Candidate): Promise<string[]> {
  const lines: string[] = [];
  for (const one of verifiers) lines.push(await spoken(one, candidate));
  return lines;
}

/** Tasks of the first and of the last level; none where what they are made from is not set up. */
async function tasksOf(environment: Environment): Promise<Task[]> {
  const needs = (await environment.needs?.()) ?? [];
  if (needs.some(({ present }) => !present)) return [];
  await environment.prepare?.();
  const levels = [...new Set([environment.levels[0]!, environment.levels.at(-1)!])];
  return Promise.all(
    levels.map(async (level) =>
      environment.task({ environment: environment.name, split: 'train', level, index: 0 }),
    ),
  );
}

describe.each(builtInEnvironments.map((environment) => [environment.name, environment] as const))(
  'verifiers of %s',
  (_, environment) => {
    const fast = environment.verifiers.filter((one): one is FastVerifier => one.tier === 'fast');

    test('judge what is odd as they judge anything', async () => {
      for (const task of await tasksOf(environment)) {
        const plain = await allSpoken(fast, candidateOf(task, [says('1')]));
        await fc.assert(
          fc.asyncProperty(actionsOf(environment), async (actions) => {
            expect(await allSpoken(fast, candidateOf(task, actions))).toEqual(plain);
          }),
          { numRuns: propertyRuns(200), endOnFailure: true },
        );
      }
    });

    test('judge what is long in a time that grows as its length does', async () => {
      const [task] = await tasksOf(environment);
      if (task === undefined) return;
      for (const one of fast)
        for (const answer of LONG_ANSWERS)
          expect(`${one.name}: ${await spoken(one, candidateOf(task, [says(answer)]))}`).toMatch(
            / (?:score|abstain)$/u,
          );
    });
  },
);
