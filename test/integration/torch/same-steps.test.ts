import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTraining } from '../../../activities/training/learner.ts';
import type { GapBin, StalenessGap, TrainResult } from '../../../core/requests/learner.ts';
import type { Learner } from '../../../engine/learner/contract.ts';
import { createLocalLearner } from '../../../engine/learner/local-learner.ts';
import { loadCheckpoint } from '../../../store/training/checkpoints.ts';
import { LEARNER_CASES } from '../../support/engine/learner-cases.ts';
import { apart, sizeOf, twoSteps } from '../../support/learner-steps.ts';
import { openTestStore } from '../../support/test-store.ts';
import { TorchLines, withTorch } from '../../support/torch-learner.ts';

// Two steps of every loss by the learner of Gradus and by the one in PyTorch, from the same objects of a real store.

const { server, store } = await openTestStore();
const { signal } = new AbortController();

function expectNear(got: number | null | undefined, wanted: number | null | undefined, what: string): void {
  if (typeof wanted !== 'number') return expect(got ?? null, what).toBeNull();
  expect(Math.abs(got! - wanted), `${what}: ${got} for ${wanted}`).toBeLessThan(
    1e-5 * Math.max(1, Math.abs(wanted)),
  );
}

function expectBins(got: GapBin[] | undefined, wanted: GapBin[] | undefined): void {
  const cut = (bins: GapBin[] | undefined) => bins?.map(({ from, tokens }) => ({ from, tokens }));
  expect(cut(got)).toEqual(cut(wanted));
  for (const [i, { mean, from }] of (wanted ?? []).entries())
    expectNear(got![i]!.mean, mean, `gap from ${from} on`);
}

const asBins = (gaps: StalenessGap[] | undefined): GapBin[] | undefined =>
  gaps?.map(({ staleness, ...gap }) => ({ from: staleness, ...gap }));

await withTorch((python) => {
  let learner: Learner;
  let torch: TorchLines;
  beforeAll(async () => {
    torch = new TorchLines(python, server.environment());
    learner = await createLocalLearner({ backend: 'cpu' });
  });
  afterAll(async () => {
    await torch?.close();
    await learner?.close();
  });

  test.each(LEARNER_CASES.map((one, i) => [one.name, one, i] as const))(
    'two steps of %s are those of the reference',
    async (_, one, i) => {
      const training = createTraining({ store, learner });
      const wanted = await twoSteps(store, `gradus-${i}`, one, (request) =>
        training.trainStep(request, signal),
      );
      const got = await twoSteps(store, `torch-${i}`, one, (request) =>
        torch.result<TrainResult>('trainStep', request),
      );
      for (const [step, { metrics, checkpoint }] of got.entries()) {
        const expected = wanted[step]!;
        const {
          critic,
          preference,
          seconds: _,
          logprobGapByPosition,
          logprobGapByLength,
          logprobGapByStaleness,
          effectiveSamples,
          ...figures
        } = metrics;
        const { critic: itsCritic, preference: itsPreference, ...others } = expected.metrics;
        expectNear(effectiveSamples?.tokens, others.effectiveSamples?.tokens, 'effective tokens');
        expectNear(effectiveSamples?.sequences, others.effectiveSamples?.sequences, 'effective sequences');
        expectBins(logprobGapByPosition, others.logprobGapByPosition);
        expectBins(logprobGapByLength, others.logprobGapByLength);
        expectBins(asBins(logprobGapByStaleness), asBins(others.logprobGapByStaleness));
        for (const [name, value] of Object.entries(figures))
          expectNear(value, others[name as keyof typeof figures], `${name} of step ${step + 1}`);
        for (const name of Object.keys(itsCritic ?? {}) as (keyof NonNullable<typeof critic>)[])
          expectNear(critic?.[name], itsCritic![name], `${name} of the critic`);
        for (const name of Object.keys(itsPreference ?? {}) as (keyof NonNullable<typeof preference>)[])
          expectNear(preference?.[name], itsPreference![name], name);

        const [ours, theirs] = [
          await loadCheckpoint(store, expected.checkpoint),
          await loadCheckpoint(store, checkpoint),
        ];
        expect(theirs.manifest.updates).toBe(ours.manifest.updates);
        expect([...theirs.files]).toEqual([...ours.files]);
        const [a, b] = [ours.state, theirs.state];
        expect(b.adapter?.lora).toEqual(a.adapter?.lora);
        const [mine, its] = [a.adapter?.weights ?? a.weights, b.adapter?.weights ?? b.weights];
        expect(apart(mine, its) / sizeOf(mine), 'weights').toBeLessThan(1e-6);
        expect(apart(a.firstMoments, b.firstMoments)).toBeLessThan(1e-4 * (1e-9 + sizeOf(a.firstMoments)));
        expect(apart(a.secondMoments, b.secondMoments)).toBeLessThan(1e-4 * (1e-9 + sizeOf(a.secondMoments)));
        expect(b.critic?.updates).toBe(a.critic?.updates);
        if (a.critic)
          expect(apart(a.critic.weights, b.critic!.weights) / sizeOf(a.critic.weights)).toBeLessThan(1e-6);
      }
    },
    60_000,
  );
});
