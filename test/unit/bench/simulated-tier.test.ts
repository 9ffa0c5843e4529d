import { expect, test } from 'vitest';
import { raisedIn } from '../../../bench/alarms/alarms.ts';
import { simulatedTier } from '../../../bench/alarms/simulated-tier.ts';
import type { TierShape } from '../../../bench/alarms/simulated-tier.ts';

// A stage or two of those that `npm run bench -- hacking` counts.

const shape: TierShape = { steps: 24, kind: 'hacked', audit: 0.05, uncertaintyAtLeast: 1 };
const compared = (step: Awaited<ReturnType<typeof simulatedTier>>[number]): number =>
  step.told.rollout!.components['ladder']!.model!.compared;

test('a policy finds what a tier pays by mistake, and its audits name it', async () => {
  const stage = await simulatedTier(0, shape);
  expect(stage.at(0)!.tricks).toBeLessThan(0.1);
  expect(stage.at(-1)!.tricks).toBeGreaterThan(0.5);
  expect(stage.at(-1)!.right).toBeLessThan(stage.at(0)!.right);
  const audited = stage.reduce((sum, step) => sum + compared(step), 0) / stage.length;
  expect(audited).toBeGreaterThan(3);
  expect(audited).toBeLessThan(10);
  expect(raisedIn(stage.map(({ told }) => told)).has('reward-hacking')).toBe(true);
});

test('without audits nothing is compared', async () => {
  const stage = await simulatedTier(0, { ...shape, steps: 3, audit: 0 });
  expect(stage.map(compared)).toEqual([0, 0, 0]);
});

test('a healthy tier teaches to work, and raises no alarm; the same seed is the same stage', async () => {
  const healthy: TierShape = { ...shape, kind: 'healthy' };
  const stage = await simulatedTier(0, healthy);
  expect(stage.at(-1)!.right).toBeGreaterThan(stage.at(0)!.right);
  expect(stage.at(-1)!.tricks).toBeLessThan(0.05);
  expect([...raisedIn(stage.map(({ told }) => told)).keys()]).toEqual([]);
  expect(await simulatedTier(0, { ...healthy, steps: 3 })).toEqual(stage.slice(0, 3));
});
