import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { boxedMath } from '../../../../environments/verifiers/math/boxed-math.ts';
import { normalizeSquad, squadExactMatch, squadF1 } from '../../../../environments/verifiers/squad.ts';
import { candidateOf, judged, says } from './candidates.ts';

// Against Python code: test/reference/answers.

const rowsOf = <Row>(name: string): Row[] =>
  JSON.parse(readFileSync(new URL(`../../../reference/answers/${name}`, import.meta.url), 'utf8')) as Row[];

type MathPair = [kind: string, expected: string, given: string, right: boolean, mathVerify: boolean];
const MATH = rowsOf<MathPair>('math.json');

test.each([...new Set(MATH.map(([kind]) => kind))])(
  'a box with a %s is right where its value is',
  async (kind) => {
    const pairs = MATH.filter((pair) => pair[0] === kind);
    expect(pairs.length).toBeGreaterThanOrEqual(100);
    const scored = await Promise.all(
      pairs.map(async ([, expected, given]) => {
        const { score } = await judged(
          boxedMath(),
          candidateOf({ answer: expected }, [says(`\\boxed{${given}}`)]),
        );
        return { expected, given, score };
      }),
    );
    expect(scored).toEqual(
      pairs.map(([, expected, given, right]) => ({ expected, given, score: right ? 1 : 0 })),
    );
  },
);

test('exact match and F1 are those of Python, whatever the white space', async () => {
  type Pair = [given: string, expected: string, normalized: string, exactMatch: number, f1: number];
  const pairs = rowsOf<Pair>('squad.json');
  expect(pairs.length).toBeGreaterThanOrEqual(1000);
  const score = async (verifier: ReturnType<typeof squadF1>, expected: string, given: string) =>
    (await judged(verifier, candidateOf({ answer: expected }, [says(given)]))).score;
  for (const [given, expected, normalized, exactMatch, f1] of pairs) {
    expect(normalizeSquad(given)).toBe(normalized);
    expect(await score(squadExactMatch(), expected, given)).toBe(exactMatch);
    expect(await score(squadF1(), expected, given)).toBeCloseTo(f1, 12);
  }
});
