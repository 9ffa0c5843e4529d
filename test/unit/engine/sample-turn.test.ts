import { afterEach, expect, test } from 'vitest';
import type { AdvanceContext } from '../../../activities/rollout/advance-episode.ts';
import { sampleTurn } from '../../../engine/sample-turn.ts';
import { randomKey } from '../../../core/random.ts';
import { createDecoder } from '../../../engine/decoder/decoder.ts';
import type { DecoderOptions } from '../../../engine/decoder/decoder.ts';
import type { LocalPolicy, SampleResult } from '../../../engine/policy.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { randomWeights, smallConfig } from '../../support/engine/random-model.ts';
import { dialect, tokenizer } from '../activities/test-environment.ts';
import { hostedHere } from '../../../environments/host/hosted-environment.ts';

const open: LocalPolicy[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((policy) => policy.close()));
});

const config = { ...smallConfig, vocabSize: tokenizer.vocabSize };
const MOST = 80;

/** Over once it has written so many of five letters, which random weights do soon. */
const letters = (count: number) => (text: string) => text.replace(/[^a-e]/gu, '').length >= count;

async function contextOf(
  options: DecoderOptions,
  isOver?: (text: string) => boolean,
  topK = 0,
): Promise<AdvanceContext> {
  const policy = createDecoder({ threads: 1, ...options });
  open.push(policy);
  await policy.load('v1', config, randomWeights(config));
  return {
    policy,
    tokenizer,
    dialect: { ...dialect, stopTokens: [], ...(isOver && { isOver }) },
    environment: hostedHere(calculatorEnvironment()),
    ref: { environment: 'calculator', split: 'train', level: 1, index: 0 },
    tools: [],
    sampling: { temperature: 1, topK, topP: 1, maxTurns: 3, maxCompletionTokens: 250 },
    maxPositions: 300,
    promptTokens: [1, 2, 3],
    episodeId: 'run/rl/1/0/0',
    policySession: 's',
    key: randomKey('pieces'),
    signal: new AbortController().signal,
  };
}

/** Two turns with an observation between them. */
async function twoTurns(context: AdvanceContext): Promise<[SampleResult, SampleResult]> {
  const first = await sampleTurn(context, { tokens: [], mask: [] }, MOST);
  const observation = Array.from({ length: 40 }, (_, i) => i);
  const history = {
    tokens: [...first.tokens, ...observation],
    mask: [...first.tokens.map(() => 1 as const), ...observation.map(() => 0 as const)],
  };
  const second = await sampleTurn(context, history, MOST);
  return [first, second];
}

test('a turn that is sampled in pieces is the turn that is sampled at once, to the bit', async () => {
  const pieces = await twoTurns(await contextOf({}, () => false));
  expect(pieces.map(({ tokens, finish }) => [tokens.length, finish])).toEqual([
    [MOST, 'length'],
    [MOST, 'length'],
  ]);
  expect(await twoTurns(await contextOf({}))).toEqual(pieces);
});

test('a turn of pieces says what each of its tokens was sampled among, where sampling cuts', async () => {
  const pieces = await twoTurns(await contextOf({}, () => false, 6));
  for (const { tokens, kept } of pieces) {
    expect(kept).toHaveLength(MOST);
    tokens.forEach((token, i) => expect(kept![i]).toContain(token));
    expect(kept!.every((ids) => ids.length === 6)).toBe(true);
  }
  expect(await twoTurns(await contextOf({}, undefined, 6))).toEqual(pieces);
  const [first] = await twoTurns(await contextOf({}, letters(30), 6));
  expect(first.tokens.length).toBeLessThan(MOST);
  expect(first.kept).toEqual(pieces[0].kept!.slice(0, first.tokens.length));
});

test('a turn is cut after the token that ends it, and what was sampled behind it leaves no trace', async () => {
  const [whole] = await twoTurns(await contextOf({}));
  const isOver = letters(30);
  const [first, second] = await twoTurns(await contextOf({}, isOver));
  const { length } = first.tokens;
  expect(first).toEqual({
    tokens: whole.tokens.slice(0, length),
    samplerLogprobs: whole.samplerLogprobs.slice(0, length),
    finish: 'stop',
  });
  expect(length).toBeLessThan(MOST);
  expect(length % 32).not.toBe(0);
  expect(isOver(tokenizer.decode(first.tokens))).toBe(true);
  expect(isOver(tokenizer.decode(first.tokens.slice(0, -1)))).toBe(false);
  // A decoder that keeps nothing cannot have kept what was thrown away.
  expect(await twoTurns(await contextOf({ cacheBytes: 0 }, isOver))).toEqual([first, second]);
});
