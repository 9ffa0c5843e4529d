import { expect, test } from 'vitest';
import { keepReplayed, replayGroups } from '../../../activities/training/replay-groups.ts';
import type { Episode, RolloutGroup } from '../../../core/episode/episode.ts';
import type { RewardSpec } from '../../../core/schema/reward.ts';
import { replayedKey, scoresKey } from '../../../store/keys.ts';
import { putTrajectories } from '../../../store/rollout/trajectories.ts';
import { scoresCodec } from '../../../store/training/scores.ts';
import { openTestStore } from '../../support/test-store.ts';

// Which groups of earlier steps are replayed, by the probability that the policy gives their successes.

const { store } = await openTestStore();
const { signal } = new AbortController();
const reward: RewardSpec = {
  components: [{ verifier: 'exact-match', role: 'outcome', weight: 1, gatedBy: null }],
  truncated: 'train',
};

/** Two tokens of the policy with one between that a tool wrote. */
const episode = (sample: number, solved: boolean): Episode => ({
  sample,
  task: 0,
  tokens: [1, 2, 3],
  mask: [1, 0, 1],
  samplerLogprobs: [-1, 0, -1],
  turns: [],
  status: { kind: 'answered', answer: '' },
  outcome: {
    kind: 'scored',
    reward: Number(solved),
    components: [
      {
        verifier: 'exact-match',
        version: '1',
        score: Number(solved),
        contribution: Number(solved),
        passed: solved,
      },
    ],
  },
});

async function keptOf(run: string, groups: { solved: boolean; probability: number }[][], over: object) {
  const place = { run, stage: 'rl', step: 2 };
  const refs = [];
  for (const [at, samples] of groups.entries()) {
    const group: RolloutGroup = {
      id: `group-000${at}`,
      weights: 'w',
      temperature: 1,
      tasks: [
        {
          ref: { environment: 'calculator', split: 'train', level: 1, index: at },
          prompt: '',
          promptTokens: [1],
        },
      ],
      episodes: samples.map(({ solved }, sample) => episode(sample, solved)),
    };
    const { ref } = await putTrajectories(store, { ...place, step: 1 }, group, { signal });
    refs.push({ ref, task: 0 });
  }
  const copies = await replayGroups(store, { ...place, groups: refs }, signal);
  const policy = groups
    .flat()
    // What the tool wrote is none of the policy's: its score is not looked at.
    .flatMap(({ probability }) => [2 * Math.log(probability), -50, 0]);
  const scores = (
    await store.putIfAbsent(
      scoresKey(run, 'rl.replayed', 2),
      scoresCodec,
      { policy: Float32Array.from(policy) },
      { signal },
    )
  ).ref;
  return keepReplayed(
    store,
    { ...place, groups: copies, scores, minEffectiveSamples: 0, reward, ...over },
    signal,
  );
}

const GROUPS = [
  [
    { solved: true, probability: 0.4 },
    { solved: false, probability: 0.7 },
  ],
  [
    { solved: true, probability: 0.6 },
    { solved: false, probability: 0.01 },
  ],
  [
    { solved: true, probability: 0.99 },
    { solved: true, probability: 0.97 },
  ],
  [
    { solved: false, probability: 0.7 },
    { solved: false, probability: 0.7 },
  ],
  [
    { solved: true, probability: 0.99 },
    { solved: true, probability: 0.8 },
  ],
];

test('only groups are replayed whose successes are neither unlikely nor certain', async () => {
  expect(await keptOf('bounded', GROUPS, { successes: { from: 0.5, to: 0.95 } })).toEqual([1, 4]);
  const kept = await store.listFolder('runs/bounded/replayed/rl/');
  expect(kept.keys).toContain(replayedKey('bounded', 'rl', 2));
});

test('what was kept first counts, and without bounds all are replayed', async () => {
  expect(await keptOf('bounded', GROUPS, {})).toEqual([1, 4]);
  expect(await keptOf('unbounded', GROUPS, {})).toEqual([0, 1, 2, 3, 4]);
});
