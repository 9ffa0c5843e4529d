import { expect, test } from 'vitest';
import { givenExample, numbered } from '../../../../activities/training/given-examples.ts';
import type { Prefers } from '../../../../activities/training/given-examples.ts';
import { packBatch } from '../../../../activities/training/training-batch.ts';
import { preferenceObjective, preferenceSchema } from '../../../../core/algorithms/preference.ts';
import type { TrainingSample } from '../../../../core/algorithms/training-sample.ts';
import { readGivenLine } from '../../../../core/schema/given-line.ts';
import type { TrainBatch } from '../../../../engine/learner/contract.ts';
import { learnerOfFile } from '../../engine/learner/learner-of-file.ts';
import { freshState, lively, settings, TINY } from '../../../support/engine/tiny.ts';
import { dialect, tokenizer } from '../test-environment.ts';
import { call, result, user } from './given-messages.ts';

const learner = await learnerOfFile('eager');

const exampleOf = (prefers: Prefers, line: unknown): TrainingSample[] =>
  givenExample(
    { where: 'pairs.jsonl, line 7', line: readGivenLine(JSON.stringify(line)) },
    () => dialect,
    Infinity,
    prefers,
  );
const answer = (content: string) => ({ role: 'assistant', content });
const trained = ({ tokens, mask }: TrainingSample): string =>
  tokenizer.decode(tokens.filter((_, i) => mask[i] === 1));

test('of a pair only what is behind the prompt counts, also where the prompt is what both begin with', () => {
  const shared = [user, call, result];
  const explicit = exampleOf('dpo', { prompt: shared, chosen: [answer('far')], rejected: [answer('near')] });
  const implicit = exampleOf('dpo', {
    chosen: [...shared, answer('far')],
    rejected: [...shared, answer('near')],
  });
  expect(implicit).toEqual(explicit);
  expect(explicit.map(trained)).toEqual(['<answer>far</answer>', '<answer>near</answer>']);
  expect(explicit.map(({ label }) => label)).toEqual([1, -1]);
  const [chosen, rejected] = explicit.map(({ tokens, mask }) => tokens.slice(0, mask.indexOf(1)));
  expect(chosen).toEqual(rejected);
  const turns = exampleOf('dpo', {
    prompt: 'Find 0',
    chosen: [call, result, answer('far')],
    rejected: 'far',
  });
  expect(turns.map(trained)).toEqual([
    '<tool_call>{"name":"search","arguments":{"query":"moon"}}</tool_call><answer>far</answer>',
    '<answer>far</answer>',
  ]);
});

const pair = { prompt: 'a', chosen: 'b', rejected: 'c' };
const single = { prompt: 'a', completion: 'b' };
test.each<[string, Prefers, unknown, string]>([
  ['an example for dpo', 'dpo', single, 'is no pair'],
  ['a pair for kto', 'kto', pair, 'is a pair, and kto learns from single examples'],
  ['an example without a label', 'kto', single, 'has no "label"'],
  ['a label that is no truth value', 'kto', { ...single, label: 1 }, 'has no "label"'],
  ['a weight of a pair', 'dpo', { ...pair, weight: 2 }, 'dpo weighs all lines alike'],
  ['a weight of an example', 'kto', { ...single, label: true, weight: 2 }, 'kto weighs all lines alike'],
  [
    'a side that no dialect writes',
    'dpo',
    { ...pair, rejected: 'a</answer>b' },
    'line 7, rejected cannot be',
  ],
])('%s is refused with its line', (_, prefers, line, why) => {
  expect(() => exampleOf(prefers, line)).toThrow('pairs.jsonl, line 7');
  expect(() => exampleOf(prefers, line)).toThrow(why);
});

test('a completion of kto stands once more behind another prompt, in the same update', () => {
  const lines = ['a', 'a', 'b'].map((prompt, i) => ({ prompt, completion: `${i}`, label: i !== 1 }));
  const all = numbered(
    lines.map((line) => exampleOf('kto', line)),
    Infinity,
    'kto',
  );
  expect(all.map(({ label, together }) => [label, together])).toEqual([
    [1, 0],
    [0, 0],
    [-1, 1],
    [0, 1],
    [1, 2],
    [0, 2],
  ]);
  const promptOf = ({ tokens, mask }: TrainingSample) =>
    /user\n(.*)<\|im_end\|>/u.exec(tokenizer.decode(tokens.slice(0, mask.indexOf(1))))![1];
  expect(all.map((one) => [promptOf(one), trained(one).replace(/<\/?answer>/gu, '')])).toEqual([
    ['a', '0'],
    ['b', '0'],
    ['a', '1'],
    ['b', '1'],
    ['b', '2'],
    ['a', '2'],
  ]);
  const { updates } = packBatch(all, { minibatch: 2, epochs: 1, seed: 1 });
  expect(updates.map((update) => update.toSorted())).toHaveLength(3);
  for (const update of updates) expect(Math.floor(update[0]! / 2)).toBe(Math.floor(update[1]! / 2));
  const [alone] = lines.map((line) => exampleOf('kto', line));
  expect(numbered([alone!, alone!], Infinity, 'kto').map(({ label }) => label)).toEqual([1, 1]);
});

/** The loss of the learner, and what its log-probs under policy and reference come to, for each sequence. */
async function stepOn(prefers: Prefers, written: object, lines: readonly object[]) {
  const spec = preferenceSchema.parse({ kind: prefers, ...written });
  const config = { ...TINY, vocabSize: tokenizer.vocabSize, maxPositions: 256 };
  const examples = lines.map((line) => exampleOf(prefers, line));
  const batch = packBatch(numbered(examples, 256, prefers), { minibatch: 1000, epochs: 1, seed: 1 });
  const reference = lively(config, 9);
  const policy = freshState(config);
  const { metrics } = await learner.step(policy, batch, settings(preferenceObjective(spec)), { reference });
  const from = { logprobs: { temperature: 1, topK: 0 } };
  const ofPolicy = await learner.score(policy, batch, from);
  const ofReference = await learner.score({ config, weights: reference }, batch, from);
  const sums = (all: Float32Array) => sequencesOf(batch).map(([start, end]) => sum(all.subarray(start, end)));
  const [own, others] = [sums(ofPolicy.logprobs!), sums(ofReference.logprobs!)];
  return { loss: metrics.loss!, ratios: own.map((value, i) => value - others[i]!), batch };
}
const sequencesOf = ({ offsets }: TrainBatch): [number, number][] =>
  [...offsets.subarray(1)].map((end, i) => [offsets[i]!, end]);
const sum = (values: Iterable<number>): number => [...values].reduce((all, value) => all + value, 0);
const sigma = (x: number): number => 1 / (1 + Math.exp(-x));

const PAIRS = [
  { prompt: 'Find 0', chosen: [call, result, answer('far')], rejected: 'near' },
  { prompt: 'Find 1', chosen: 'yes', rejected: [call, result, answer('no')] },
  { prompt: 'Find 22', chosen: 'it is far', rejected: 'moon' },
];

test('the loss of given pairs is equation 7 of DPO (arXiv 2305.18290), and equation 17 of IPO (arXiv 2310.12036)', async () => {
  const beta = 0.3;
  const { loss, ratios } = await stepOn('dpo', { beta }, PAIRS);
  const differences = PAIRS.map((_, i) => ratios[2 * i]! - ratios[2 * i + 1]!);
  const dpo = sum(differences.map((delta) => -Math.log(sigma(beta * delta)))) / PAIRS.length;
  expect(loss).toBeCloseTo(dpo, 4);
  const squared = await stepOn('dpo', { beta, variant: 'ipo' }, PAIRS);
  const ipo = sum(differences.map((delta) => (delta - 1 / (2 * beta)) ** 2)) / PAIRS.length;
  expect(squared.loss / ipo).toBeCloseTo(1, 4);
});

test('the loss of labelled examples is equation 8 of KTO (arXiv 2402.01306)', async () => {
  const lines = PAIRS.map(({ prompt, chosen }, i) => ({ prompt, completion: chosen, label: i !== 1 }));
  const beta = 0.2;
  const { loss, ratios, batch } = await stepOn('kto', { beta, undesirableWeight: 2 }, lines);
  expect([...batch.sequences.label!]).toEqual([1, 0, -1, 0, 1, 0]);
  const [first, z1, second, z2, third, z3] = ratios as [number, number, number, number, number, number];
  const z0 = Math.max(0, (z1 + z2 + z3) / 3);
  const kto =
    (1 -
      sigma(beta * (first - z0)) +
      2 * (1 - sigma(beta * (z0 - second))) +
      1 -
      sigma(beta * (third - z0))) /
    3;
  expect(loss).toBeCloseTo(kto, 4);
});
