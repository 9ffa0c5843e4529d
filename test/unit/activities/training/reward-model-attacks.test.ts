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

async function trained(cuts: boolean): Promise<RewardModel[]> {
  const models: RewardModel[] = [];
  for (let model = 0; model < MODELS; model++) {
    let state: TrainState = freshState();
    for (let step = 0; step < 120; step++) {
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

const prompts = Array.from({ length: LETTERS }, (_, letter) => ask(letter, (letter * 3 + 1) % LETTERS));

/** Mean of what is paid over all prompts, and how many were judged. */
async function paid(
  models: RewardModel[],
  answer: (prompt: number[]) => number[],
  status: Episode['status'] = { kind: 'answered', answer: '' },
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

describe.each([
  ['has seen what is cut off and empty', true],
  ['has seen whole answers alone', false],
])('a reward model that %s', (_, cuts) => {
  let models: RewardModel[];
  let right: number;
  beforeAll(async () => {
    models = await trained(cuts);
    right = (await paid(models, ([letter]) => [letter!, END])).score;
  }, 240_000);

  test('pays what is right, and not what is wrong', async () => {
    const wrong = await paid(models, ([letter]) => [(letter! + 1) % LETTERS, END]);
    expect(right - wrong.score).toBeGreaterThan(0.4);
  });

  test('pays a constant answer less than half of what is right', async () => {
    expect((await paid(models, ATTACKS.constant)).score).toBeLessThan(right / 2);
  });

  test(
    cuts ? 'does not pay what is empty or cut off' : 'pays what is cut off, and so is not asked about it',
    async () => {
      for (const name of ['empty', 'cut off'] as const) {
        const { score } = await paid(models, ATTACKS[name]);
        const said = [name, score, right].join(' ');
        if (cuts) expect(score, said).toBeLessThan(0.1);
        else if (name === 'cut off') expect(score, said).toBeGreaterThan(right / 2);
        expect(await paid(models, ATTACKS[name], { kind: 'truncated', limit: 'tokens' })).toEqual({
          score: 0,
          judged: 0,
        });
      }
    },
  );
});
