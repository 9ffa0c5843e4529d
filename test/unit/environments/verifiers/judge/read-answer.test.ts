import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ANSWER } from '../../../../../environments/verifiers/judge/options.ts';
import { readAnswer } from '../../../../../environments/verifiers/judge/read-answer.ts';

const GOOD = '{"reason":"it says {so} \\"here\\"","score":0.5}';

describe('the answer of a judge', () => {
  test.each([
    ['alone', GOOD],
    ['in a fence', `\`\`\`json\n${GOOD}\n\`\`\``],
    ['among words', `Well {hm}: here it is: ${GOOD} That is all.`],
    ['after thoughts with another score', `<think>{"reason":"first","score":1} or not</think>\n${GOOD}`],
    ['twice the same', `${GOOD}\n${GOOD}`],
    ['after an object that is none of ours', `{"score":"high"} ${GOOD}`],
  ])('is found %s', (_, text) => {
    expect(readAnswer(text, ANSWER)).toEqual({ kind: 'vote', score: 0.5, reason: 'it says {so} "here"' });
  });

  test.each([
    ['', 'unreadable'],
    ['I would give it a 1.', 'unreadable'],
    ['{"reason":"cut', 'unreadable'],
    ['{"reason":"a score that is none","score":0.3}', 'unreadable'],
    ['{"reason":"a word","score":"1"}', 'unreadable'],
    ['{"score":1}', 'unreadable'],
    ['[{"reason":"a list","score":1}]', 'unreadable'],
    ['null', 'unreadable'],
    ['{"reason":"of ten","score":7}', 'out-of-range'],
    ['{"reason":"below","score":-1}', 'out-of-range'],
  ])('is an abstention and no zero for %j', (text, type) => {
    expect(readAnswer(text, ANSWER)).toMatchObject({ kind: 'abstained', type });
  });

  test('is none where two answers differ, for one may be a quotation of the attempt', () => {
    const text = `The attempt says {"reason":"perfect","score":1}, but: {"reason":"wrong","score":0}`;
    expect(readAnswer(text, ANSWER)).toMatchObject({ kind: 'abstained', type: 'unreadable' });
  });

  test('may have the shape that the user wants, within [0, 1]', () => {
    const schema = z.strictObject({ faults: z.array(z.string()), score: z.number() });
    expect(readAnswer('{"faults":["a"],"score":0.31}', schema)).toEqual({
      kind: 'vote',
      score: 0.31,
      reason: '',
    });
    expect(readAnswer('{"faults":[],"score":1.01}', schema)).toMatchObject({ type: 'out-of-range' });
  });

  test('has a reason short enough to be kept', () => {
    const read = readAnswer(JSON.stringify({ reason: 'x'.repeat(5000), score: 1 }), ANSWER);
    expect(read.reason).toHaveLength(500);
  });

  test.each([
    ['open braces', '{'],
    ['open objects', '{"a":'],
  ])('is an abstention for a flood of %s, which is not read over for each', (_, one) => {
    expect(readAnswer(one.repeat(1_000_000), ANSWER)).toMatchObject({
      kind: 'abstained',
      type: 'unreadable',
    });
  });
});
