import { beforeAll, describe, expect, test } from 'vitest';
import { judgeGroup } from '../../../../activities/training/judge-episodes.ts';
import type { RewardModel } from '../../../../activities/training/judge-episodes.ts';
import { packBatch } from '../../../../activities/training/training-batch.ts';
import type { Episode, RolloutGroup } from '../../../../core/episode/episode.ts';
import { RandomStream } from '../../../../core/random.ts';
import { readEpisode } from '../../../../core/reward/reward-model.ts';
import type { TrainState } from '../../../../engine/learner/contract.ts';
import { freshState, settings, TINY } from '../../../support/engine/tiny.ts';
import { learnerOfFile } from '../../engine/learner/learner-of-file.ts';

// What a policy would try that is paid by a reward model: answers that say nothing. The task is to say the letter again that
// stands first in the prompt; models learn it from what a half-trained policy does, and are asked about what that never did.

const learner = await learnerOfFile();
const { signal } = new AbortController();
const LETTERS = 8;
const [ASK, END] = [16, 17];
const MODELS = 1;
/** What a right answer earns more than a wrong one when a model is trained, looked at after each so many steps. */
const [TOLD, LOOK, MOST_STEPS] = [0.6, 30, 480];
const by = { by: 'mean-deviation' as const, deviations: 1 };

const ask = (letter: number, other: number): number[] => [letter, other, ASK];
function episodeOf(tokens: number[], turns = tokens.length === 0 ? 0 : 1): Episode {
  return {
    sample: 0,
    task: 0,
    tokens,
    mask: tokens.map(() => 1 as const),
    samplerLogprobs: tokens.map(() => -1),
    turns:
      turns === 0 ? [] : [{ start: 0, end: tokens.length, text: '', action: { kind: 'answer', answer: '' } }],
    status: { kind: 'answered', answer: '' },
  };
}

/** A policy that is right half of the time. With `cuts`, an eighth of its samples are cut off, or say nothing at all. */
function sampled(stream: RandomStream, cuts: boolean) {
  const [letter, other] = [stream.int(0, LETTERS - 1), stream.int(0, LETTERS - 1)];
  const said = stream.uniform() < 0.5 ? letter : stream.int(0, LETTERS - 1);
  const cut = cuts && stream.uniform() < 0.125;
  const whole = [said, END];
  const tokens = cut ? (stream.uniform() < 0.5 ? [] : [said]) : whole;
  return { prompt: ask(letter, other), tokens, label: Number(!cut && said === letter) };
}

/** Until it tells right from wrong on prompts that no test asks about: how many steps that takes depends on the processor. */
async function trained(cuts: boolean): Promise<RewardModel[]> {
  const models: RewardModel[] = [];
  for (let model = 0; model < MODELS; model++) {
    let state: TrainState = freshState();
    for (let step = 0; step % LOOK > 0 || (await tellsApart([state])) < TOLD; step++) {
      if (step === MOST_STEPS) throw new Error(`a reward model is not trained after ${step} steps`);
      const stream = new RandomStream('attacks', Number(cuts), model, step);
      const sequences = Array.from({ length: 64 }, () => {
        const { prompt, tokens, label } = sampled(stream, cuts);
        const read = readEpisode(prompt, episodeOf(tokens), TINY.maxPositions);
        const at = (value: number) => read.tokens.map((_, place) => (place === read.ends[0] ? value : 0));
        return { tokens: read.tokens, mask: at(1), streams: { returns: at(label) } };
      });
      const batch = packBatch(sequences, { minibatch: 64, epochs: 1, seed: step });
      const critic = { clip: 0, loss: 'cross-entropy' as const, optimizer: settings(null).optimizer };
      ({ state } = await learner.step(state, batch, settings(null, { critic })));
    }
    models.push(state);
  }
  return models;
}

const promptsOf = (shift: number) =>
  Array.from({ length: LETTERS }, (_, letter) => ask(letter, (letter * 3 + shift) % LETTERS));

const isRight = ([letter]: number[]): number[] => [letter!, END];
const isWrong = ([letter]: number[]): number[] => [(letter! + 1) % LETTERS, END];

async function tellsApart(models: RewardModel[]): Promise<number> {
  const on = { prompts: promptsOf(2) };
  return (await paid(models, isRight, on)).score - (await paid(models, isWrong, on)).score;
}

/** Mean of what is paid over all prompts, and how many were judged. */
async function paid(
  models: RewardModel[],
  answer: (prompt: number[]) => number[],
  {
    status = { kind: 'answered', answer: '' },
    prompts = promptsOf(1),
  }: { status?: Episode['status']; prompts?: number[][] } = {},
) {
  const group: RolloutGroup = {
    id: 'group-0',
    weights: '',
    temperature: 1,
    tasks: prompts.map((promptTokens, index) => ({
      ref: { environment: 'letters', split: 'train', level: 1, index },
      prompt: '',
      promptTokens,
    })),
    episodes: prompts.map((prompt, task) => ({ ...episodeOf(answer(prompt)), task, status })),
  };
  const said = await judgeGroup(learner, models, group, by, signal);
  const judged = said.flatMap((one) => one ?? []);
  return {
    score: judged.reduce((sum, { score }) => sum + score, 0) / Math.max(1, judged.length),
    judged: judged.length,
  };
}

const ATTACKS = {
  constant: () => [3, END],
  empty: () => [],
  'cut off': ([letter]: number[]) => [letter!],
};
const SILENT = ['empty', 'cut off'] as const;

describe.each([
  ['has seen what is cut off and empty', true],
  ['has seen whole answers alone', false],
])('a reward model that %s', (_, cuts) => {
  let models: RewardModel[];
  let right: number;
  beforeAll(async () => {
    models = await trained(cuts);
    right = (await paid(models, isRight)).score;
  }, 240_000);

  test('pays what is right, and not what is wrong', async () => {
    expect(right - (await paid(models, isWrong)).score).toBeGreaterThan(0.4);
  });

  test('pays a constant answer less than half of what is right', async () => {
    expect((await paid(models, ATTACKS.constant)).score).toBeLessThan(right / 2);
  });

  // What one that has seen none pays for them is chance: 0.04 to 0.68 of 1 for what is cut off, by processor and steps.
  test.for(cuts ? SILENT : [])('does not pay what is %s', async (name) => {
    expect((await paid(models, ATTACKS[name])).score).toBeLessThan(0.1);
  });

  test.for(SILENT)('is not asked about what is %s at a limit', async (name) => {
    const cut = await paid(models, ATTACKS[name], { status: { kind: 'truncated', limit: 'tokens' } });
    expect(cut).toEqual({ score: 0, judged: 0 });
  });
});
