import { beforeAll, expect, test } from 'vitest';
import { packBatch } from '../../../activities/training/training-batch.ts';
import { trainingSamples } from '../../../core/algorithms/training-sample.ts';
import type { Episode, RolloutGroup } from '../../../core/episode/episode.ts';
import type { Outcome } from '../../../core/episode/outcome.ts';
import type { RewardSpec } from '../../../core/schema/reward.ts';
import { rowsOfStep } from '../../../runs/episodes/episode-rows.ts';
import { stepFolder } from '../../../runs/episodes/group-at.ts';
import { tokenAdvantages } from '../../../runs/episodes/token-advantages.ts';
import { putBatch } from '../../../store/training/batches.ts';
import { batchKey } from '../../../store/keys.ts';
import { putTrajectories } from '../../../store/rollout/trajectories.ts';
import { algorithmWith } from '../../support/algorithm.ts';
import { openTestStore } from '../../support/test-store.ts';

// A batch says nothing of the episodes that it was made of, but what they have sampled.

const { store } = await openTestStore();
const place = { run: 'alike', stage: 'rl', step: 1 };
const reward: RewardSpec = {
  components: [{ verifier: 'right', role: 'outcome', weight: 1, gatedBy: null }],
  truncated: 'mask',
};
const scored = (score: number): Outcome => ({
  kind: 'scored',
  reward: score,
  components: [{ verifier: 'right', version: '1', score, contribution: score }],
});
const episode = (sample: number, tokens: number[], outcome: Outcome): Episode => ({
  sample,
  task: 0,
  tokens,
  mask: tokens.map(() => 1),
  samplerLogprobs: tokens.map(() => -1),
  turns: [{ start: 0, end: tokens.length, text: 'x', action: { kind: 'answer', answer: 'x' } }],
  status: { kind: 'answered', answer: 'x' },
  outcome,
});
const group = (id: string, index: number, episodes: Episode[], learntBehind?: number[]): RolloutGroup => ({
  id,
  weights: '0'.repeat(64),
  temperature: 1,
  tasks: [
    {
      ref: { environment: 'calculator', split: 'train', level: 1, index },
      prompt: 'p',
      promptTokens: [1, 2],
      ...(learntBehind && { learntBehind }),
    },
  ],
  episodes,
});
const groups = [
  // One that came to nothing, and two of another reward, all alike to the letter.
  group('group-0000', 0, [
    episode(0, [5, 6], { kind: 'abstained', reason: 'nobody knows' }),
    episode(1, [5, 6], scored(1)),
    episode(2, [5, 6], scored(0)),
    episode(3, [7], scored(0)),
  ]),
  // Asked with a hint, and learnt without.
  group('group-0001', 1, [episode(0, [8], scored(1)), episode(1, [9], scored(0))], [3]),
];
const request = { ...algorithmWith({ kind: 'grpo' }), reward };

beforeAll(async () => {
  for (const one of groups) await putTrajectories(store, place, one);
  const { sequences } = trainingSamples(groups, request);
  const batch = packBatch(sequences, { minibatch: 64, epochs: 1, seed: 7 });
  await putBatch(store, batchKey(place.run, place.stage, place.step), batch);
});

const advantagesOf = async (of: RolloutGroup, i: number): Promise<number[] | null> => {
  const learnt = await tokenAdvantages(store, place, of, i);
  return learnt && [...learnt.advantages!];
};

test('of episodes that are alike each has its own advantage, and one that came to nothing none', async () => {
  expect(await advantagesOf(groups[0]!, 0)).toBeNull();
  const [first, second] = [await advantagesOf(groups[0]!, 1), await advantagesOf(groups[0]!, 2)];
  expect(first![0]).toBeGreaterThan(0);
  expect(second![0]).toBeLessThan(0);
});

test('rows say the same of them, also of what was learnt behind another prompt', async () => {
  const folder = stepFolder(place.run, place.stage, place.step);
  const rows = await rowsOfStep(store, place.run, folder, reward);
  const told = await Promise.all(
    groups.flatMap((of) => of.episodes.map((_, i) => advantagesOf(of, i).then((all) => all?.[0] ?? null))),
  );
  expect(rows.map(({ advantage }) => advantage)).toEqual(told);
  expect(told.map((advantage) => (advantage === null ? null : Math.sign(advantage)))).toEqual([
    null,
    1,
    -1,
    -1,
    1,
    -1,
  ]);
});
