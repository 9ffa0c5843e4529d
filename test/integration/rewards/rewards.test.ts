import { afterAll, beforeAll, expect, test } from 'vitest';
import { isRewarded } from '../../../core/episode/outcome.ts';
import { composeReward, turnRewards } from '../../../core/episode/reward.ts';
import { ruleName, ruleVerdicts } from '../../../core/reward/rules.ts';
import { builtInEnvironments } from '../../../environments/families/index.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { rolloutsPrefix } from '../../../store/keys.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { DONE } from '../../support/ended.ts';

let installation: TestInstallation;
let store: ObjectStore;
beforeAll(async () => {
  installation = await startTestInstallation();
  store = await ObjectStore.connect(installation.settings.store);
});
afterAll(async () => {
  store?.close();
  await installation?.remove();
});

const tiny = tinySpec({ maxSteps: 2 });
const [warmStart, rl] = tiny.stages;
const spec = {
  ...tiny,
  stages: [warmStart, { ...rl, algorithm: { kind: 'gigpo', minibatch: 32 } }],
  reward: {
    components: [
      { verifier: 'both', role: 'outcome', weight: 1 },
      { verifier: 'tool-match', role: 'bonus', weight: 0.2 },
      { verifier: 'sub-goals', role: 'bonus', weight: 0 },
    ],
    ensembles: [{ name: 'both', verifiers: ['exact-match', 'boxed-math'] }],
    rules: [
      { kind: 'linear-length', target: 10, limit: 40, weight: 0.1 },
      { kind: 'sigmoid-length', target: 30, scale: 5, weight: 0.05, gatedBy: 'both' },
      { kind: 'overlong', buffer: 10, weight: 0.1 },
      { kind: 'process', verifier: 'sub-goals', by: 'turns', weight: 0.05 },
      { kind: 'agreement', by: 'share', weight: 0.05 },
      { kind: 'confidence', weight: 0.05 },
      { kind: 'diversity', of: 'calls', weight: 0.05, gatedBy: null },
    ],
  },
};

test('a run keeps with each episode what each verifier and each rule added, and it composes to the reward again', async () => {
  const run = await installation.runs.start('rewarded', spec);
  expect((await run.result()).end).toEqual(DONE);
  const environments = new Map(builtInEnvironments.map((each) => [each.name, each]));
  const { reward } = parseSpec(spec, 'rewarded', environments);
  const names = [...reward.components.map(({ verifier }) => verifier), ...reward.rules!.map(ruleName)];
  const listed = await store.list(rolloutsPrefix('rewarded', 'rl'));
  const groups = await Promise.all(
    listed.map(async ({ key }) => loadTrajectories(store, (await store.head(key))!)),
  );
  const contributed = new Set<string>();
  let episodes = 0;
  for (const { tasks, episodes: all } of groups) {
    for (const task of tasks.keys()) {
      const samples = all.filter((episode) => episode.task === task);
      const rules = reward.rules!.filter(({ kind }) => kind !== 'agreement');
      const again = ruleVerdicts(
        rules,
        samples.map((episode) => ({
          episode,
          verdicts: isRewarded(episode.outcome!) ? episode.outcome.components : [],
        })),
      );
      samples.forEach(({ outcome, turns }, i) => {
        if (!outcome || !isRewarded(outcome))
          throw new Error(`${outcome?.kind} by verifiers that never fail`);
        episodes++;
        expect(outcome.components.map(({ verifier }) => verifier)).toEqual(names);
        const sum = outcome.components.reduce((total, { contribution }) => total + contribution, 0);
        expect(outcome.reward).toBeCloseTo(sum, 12);
        expect(composeReward(reward, outcome.components)).toMatchObject({ reward: outcome.reward });
        expect(outcome.components[0]).toMatchObject({ members: [{}, {}] });
        // What follows from the stored samples alone follows again, to the bit.
        for (const { verifier, score } of again[i]!) {
          expect(outcome.components.find((said) => said.verifier === verifier)!.score).toBe(score);
        }
        expect(turnRewards(reward, outcome)).toHaveLength(turns.length);
        for (const { verifier, contribution } of outcome.components) {
          if (contribution !== 0) contributed.add(verifier);
        }
      });
    }
  }
  expect(episodes).toBe(2 * 8 * 8);
  expect([...contributed]).toEqual(
    expect.arrayContaining(['rule:linear-length', 'rule:overlong', 'rule:confidence', 'rule:diversity']),
  );
}, 600_000);
