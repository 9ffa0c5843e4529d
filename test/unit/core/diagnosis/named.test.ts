import { describe, expect, test } from 'vitest';
import { DIAGNOSES } from '../../../../core/diagnosis/alarm.ts';
import type { DiagnosisName } from '../../../../core/diagnosis/alarm.ts';
import type { DiagnosisSetting } from '../../../../core/diagnosis/diagnosis.ts';
import type { Signals } from '../../../../core/diagnosis/signals.ts';
import { alarmsOf, factsOf, stageOf } from './stages.ts';

// Each thing goes wrong on purpose, at step 40 of a stage that was healthy until then.

const ONSET = 40;
const STEPS = 80;
const STAGES = 60;

/** From nothing at the onset to all of it ten steps later. */
const ramp = (step: number): number => Math.min(1, Math.max(0, (step - ONSET) / 10));

/** It reads no signal, but what each component has said: constant-judge.test.ts. */
type OfSignals = Exclude<DiagnosisName, 'constant-judge'>;
const OF_SIGNALS = DIAGNOSES.filter((name): name is OfSignals => name !== 'constant-judge');

/** How each goes wrong, and how many steps after its onset it is to be named at the latest. */
const SICK: Record<
  OfSignals,
  { within: number; change: (healthy: Signals, step: number) => Partial<Signals> }
> = {
  'missing-mask': { within: 4, change: () => ({ gap: 0.4 }) },
  'no-contrast': { within: 9, change: () => ({ equal: 1, variance: 0, success: 0 }) },
  'empty-batch': { within: 9, change: () => ({ learnt: 0 }) },
  'echo-trap': {
    within: 16,
    // Before the reward falls: it does not.
    change: ({ variance, entropy, gradientNorm, duplicates, success }, step) => ({
      success: Math.min(success!, 0.85),
      variance: variance! * (1 - 0.9 * ramp(step)),
      entropy: entropy! * (1 - 0.8 * ramp(step)),
      gradientNorm: gradientNorm! * (1 + 3 * ramp(step)),
      duplicates: Math.min(1, duplicates! + 0.3 * ramp(step)),
    }),
  },
  'entropy-collapse': {
    within: 16,
    // The samples of a task are the same, and so are their rewards.
    change: ({ entropy, success, variance }, step) => ({
      success: Math.min(success!, 0.85),
      variance: variance! * (1 - 0.99 * ramp(step)),
      entropy: entropy! * (1 - 0.99 * ramp(step)),
    }),
  },
  'low-ess': { within: 16, change: (_, step) => ({ effective: Math.min(0.97, 1 - ramp(step)) }) },
  'stale-samples': {
    within: 16,
    change: ({ staleness }, step) => ({ staleness: staleness! + (4 - staleness!) * ramp(step) }),
  },
  'kl-blow-up': { within: 16, change: (_, step) => ({ kl: ramp(step) }) },
  'reward-hacking': {
    within: 20,
    change: ({ reward, success }, step) => ({
      reward: reward! + 0.6 * ramp(step),
      success: Math.max(0.01, success! - 0.6 * ramp(step)),
    }),
  },
  'length-explosion': {
    within: 16,
    change: ({ length, truncated }, step) => ({
      length: length! * (1 + 2 * ramp(step)),
      truncated: Math.min(1, truncated! + 0.5 * ramp(step)),
    }),
  },
  truncation: {
    within: 16,
    change: ({ truncated }, step) => ({ truncated: truncated! * (1 - ramp(step)) + 0.6 * ramp(step) }),
  },
  'tool-errors': {
    within: 16,
    change: ({ errors }, step) => ({ errors: errors! * (1 - ramp(step)) + 0.7 * ramp(step) }),
  },
  'tool-hallucination': { within: 16, change: (_, step) => ({ unknown: 0.2 * ramp(step) }) },
  loops: { within: 16, change: ({ repeated }, step) => ({ repeated: repeated! + 0.5 * ramp(step) }) },
};

describe.each(OF_SIGNALS)('%s', (name) => {
  const { within, change } = SICK[name];
  const from = (step: number, healthy: Signals) => (step <= ONSET ? {} : change(healthy, step));
  const found = Array.from({ length: STAGES }, (_, seed) => {
    const stage = stageOf(seed, (healthy, step) => from(step, healthy), { steps: STEPS });
    return alarmsOf(stage).find((alarm) => alarm.name === name);
  });

  test(`is named within ${within} steps of its onset, whatever the stage is like`, () => {
    const late = found.filter((alarm) => alarm === undefined || alarm.stageStep > ONSET + within);
    expect(late.length).toBeLessThanOrEqual(0.05 * STAGES);
  });

  test('is not named before, and has passed the limits that it shows', () => {
    for (const alarm of found) {
      expect(alarm?.stageStep ?? STEPS).toBeGreaterThan(ONSET);
      for (const { what, now, before, limit } of alarm?.evidence ?? []) {
        // Either the figure has risen to its limit, or it has not, or has fallen to it.
        const falls = /^(success|effective)/.test(what) || (before !== null && limit < before);
        expect(falls ? now <= limit : now >= limit, what).toBe(true);
      }
    }
  });
});

test('a stage without contrast trains on nothing, and has one alarm for it; a method that asks for none has the other', () => {
  const steps = Array.from({ length: 20 }, (_, i) => factsOf(i + 1, { equal: 1, success: 0.05, learnt: 0 }));
  const named = (contrast: DiagnosisSetting['contrast']) => [
    ...new Set(alarmsOf(steps, { contrast }).map(({ name }) => name)),
  ];
  expect(named('task')).toEqual(['no-contrast']);
  expect(named('none')).toEqual(['empty-batch']);
  const mastered = steps.map((_, i) => factsOf(i + 1, { equal: 1, success: 0.95, learnt: 0 }));
  expect(alarmsOf(mastered, { contrast: 'none' })).toEqual([]);
});

test('a stage of stored episodes that trains on none of them has the alarm, though it samples nothing', () => {
  const alarms = (trainedAt: (step: number) => boolean) =>
    alarmsOf(
      Array.from({ length: 20 }, (_, i) => {
        const { rollout, batch, ...facts } = factsOf(i + 1, { equal: 0.3, success: 0.3, learnt: 0 });
        return {
          ...facts,
          rollout: { ...rollout!, sampledTokens: 0 },
          batch: { ...batch!, maskedTokens: trainedAt(i + 1) ? 9 : 0 },
        };
      }),
    ).map(({ name, stageStep }) => [name, stageStep]);
  expect(alarms(() => false)).toEqual([['empty-batch', 8]]);
  expect(alarms((step) => step % 8 === 0)).toEqual([]);
  expect(alarms((step) => step === 8)).toEqual([['empty-batch', 16]]);
});

test('a stage of hints that has nothing to correct has no alarm, and one whose hints come to nothing has', () => {
  const steps = (besides: number) =>
    Array.from({ length: 20 }, (_, i) => factsOf(i + 1, { success: 0.7, equal: 0.3, learnt: 0, besides }));
  expect(alarmsOf(steps(0), { contrast: 'none' })).toEqual([]);
  expect(alarmsOf(steps(0.2), { contrast: 'none' }).map(({ name }) => name)).toEqual(['empty-batch']);
});

describe('reward hacking on held-out tasks', () => {
  const looksAt = (solved: (step: number) => number, reward: (step: number) => number) =>
    Array.from({ length: 60 }, (_, i) => i + 1).map((step) => {
      const heldOut = step % 10 === 0 ? { successes: solved(step), trials: 300 } : null;
      return factsOf(step, { reward: reward(step), success: 0.6 }, heldOut);
    });

  test('is named when what another verifier says has been lower for a window of steps, and their reward has not', () => {
    const alarms = alarmsOf(
      looksAt(
        (step) => (step <= 30 ? 220 : 150),
        (step) => 0.5 + 0.005 * step,
      ),
    );
    expect(alarms.map(({ name, stageStep }) => [name, stageStep])).toEqual([['reward-hacking', 50]]);
    expect(alarms[0]!.evidence.map(({ what }) => what)).toEqual(['mean reward', 'held-out success']);
  });

  test('is not what a policy does that has a bad moment, and gets better again', () => {
    expect(
      alarmsOf(
        looksAt(
          (step) => (step === 40 ? 150 : 220),
          (step) => (step > 37 && step <= 40 ? 0.5 : 0.7),
        ),
      ),
    ).toEqual([]);
  });

  test('is not what a policy does that gets worse at both', () => {
    expect(
      alarmsOf(
        looksAt(
          (step) => (step <= 30 ? 220 : 150),
          (step) => (step <= 30 ? 0.7 : 0.5),
        ),
      ),
    ).toEqual([]);
  });
});

describe('reward hacking of a reward model', () => {
  const judgedAt = (of: (step: number) => { reward: number; success: number; excess: number }) =>
    alarmsOf(Array.from({ length: 60 }, (_, i) => factsOf(i + 1, of(i + 1)))).map(({ name }) => name);
  /** From nothing to its full size within ten steps. */
  const rise = (step: number) => 0.3 * Math.min(1, Math.max(0, (step - 20) / 10));

  test('is named where success stays and all that the reward rises by is the model’s', () => {
    expect(
      judgedAt((step) => ({ reward: 0.4 + rise(step), success: 0.4, excess: 0.02 + rise(step) })),
    ).toContain('reward-hacking');
  });

  test('is named on a ladder, where the model itself says what a success is', () => {
    expect(
      judgedAt((step) => ({
        reward: 0.4 + rise(step),
        success: 0.4 + rise(step),
        excess: 0.02 + rise(step),
      })),
    ).toContain('reward-hacking');
  });

  test('is not a policy that gets better by more than the model gives too much', () => {
    expect(
      judgedAt((step) => ({
        reward: 0.4 + 1.5 * rise(step),
        success: 0.4 + rise(step),
        excess: 0.02 + rise(step) / 2,
      })),
    ).toEqual([]);
  });

  test('is not a model that gave too little, and comes to give what is right', () => {
    expect(
      judgedAt((step) => ({ reward: 0.2 + rise(step), success: 0.5, excess: -0.3 + rise(step) })),
    ).toEqual([]);
  });

  test('is not a model that always gave too much', () => {
    expect(judgedAt(() => ({ reward: 0.8, success: 0.5, excess: 0.3 }))).toEqual([]);
  });
});

test('samples as old as they may be are named where they wait, and not where what is in flight makes them so', () => {
  const stage = Array.from({ length: 20 }, (_, i) => factsOf(i + 1, { staleness: i < 4 ? 1 : 2 }));
  const raised = (asynchronous: DiagnosisSetting['asynchronous']) =>
    alarmsOf(stage, { asynchronous }).map(({ name, stageStep }) => [name, stageStep]);
  expect(raised({ maxStaleness: 2, inFlight: 1 })).toEqual([['stale-samples', 9]]);
  expect(raised({ maxStaleness: 2, inFlight: 2 })).toEqual([]);
  expect(raised({ maxStaleness: 2, inFlight: Infinity })).toEqual([]);
  expect(raised({ maxStaleness: 3, inFlight: 1 })).toEqual([]);
  expect(raised(null)).toEqual([]);
});

test('tokens that were sampled for corrections and baselines may be learnt from, too', () => {
  const [healthy, more] = [factsOf(1, { learnt: 1 }), factsOf(2, { learnt: 1.3 })];
  const corrected = { ...more, rollout: { ...more.rollout!, otherTokens: more.rollout!.sampledTokens } };
  expect(alarmsOf([healthy, corrected])).toEqual([]);
});

test('more tokens that are learnt than were sampled are named at once, but for episodes of earlier steps', () => {
  const stage = [factsOf(1, { learnt: 1 }), factsOf(2, { learnt: 1.3 })];
  expect(alarmsOf(stage).map(({ name, stageStep }) => [name, stageStep])).toEqual([['missing-mask', 2]]);
  expect(alarmsOf(stage, { lateEpisodes: true })).toEqual([]);
});

test('a policy that has mastered its tasks has neither collapsed nor lost its contrast', () => {
  const mastered = (success: number) =>
    Array.from({ length: 40 }, (_, i) =>
      factsOf(
        i + 1,
        i < 10 ? { success: 0.5, entropy: 1, equal: 0.1 } : { success, entropy: 0.01, equal: 0.97 },
      ),
    );
  expect(alarmsOf(mastered(0.97))).toEqual([]);
  expect(alarmsOf(mastered(0.7)).map(({ name }) => name)).toEqual(
    expect.arrayContaining(['no-contrast', 'entropy-collapse']),
  );
});

test('length that pays is no alarm', () => {
  const grown = (success: number) =>
    Array.from({ length: 30 }, (_, i) =>
      factsOf(i + 1, { success: i < 10 ? 0.4 : success, length: i < 10 ? 100 : 300, truncated: 0.02 }),
    );
  expect(alarmsOf(grown(0.8))).toEqual([]);
  expect(alarmsOf(grown(0.4)).map(({ name }) => name)).toEqual(['length-explosion']);
});
