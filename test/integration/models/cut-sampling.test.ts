import { afterAll, beforeAll, expect, test } from 'vitest';
import { rolloutsPrefix } from '../../../store/keys.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import type { Progress } from '../../../workflows/control/messages.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { DONE } from '../../support/ended.ts';

let installation: TestInstallation;
let store: ObjectStore;
beforeAll(async () => {
  installation = await startTestInstallation();
  store = await ObjectStore.connect(installation.settings.store);
}, 600_000);
afterAll(async () => {
  store?.close();
  await installation?.remove();
});

test('a run that samples with a cut learns from the distribution that it samples from', async () => {
  const brief = briefSpec();
  const spec = { ...brief, sampling: { ...brief.sampling, topK: 6, topP: 0.95 } };
  const handle = await installation.runs.start('cut', spec);
  const result = await handle.result();
  expect(result.end).toEqual(DONE);
  expect(result.checkpoint.weights).not.toBe(result.reference!.weights);
  const { step } = await handle.query<Progress>('progress');
  expect(step!.metrics!.logprobGapMax).toBeLessThan(1e-4);
  expect(step!.metrics!.entropy).toBeLessThan(Math.log(6));

  const keys = await store.list(rolloutsPrefix('cut', 'rl'));
  const groups = await Promise.all(
    keys.map(async ({ key }) => loadTrajectories(store, (await store.head(key))!)),
  );
  const episodes = groups.flatMap((group) => group.episodes);
  expect(episodes.length).toBeGreaterThan(0);
  for (const { tokens, mask, kept } of episodes) {
    tokens.forEach((token, i) => {
      if (mask[i] === 0) expect(kept![i]).toEqual([]);
      else expect(kept![i]).toContain(token);
      expect(kept![i]!.length).toBeLessThanOrEqual(6);
    });
  }
});
