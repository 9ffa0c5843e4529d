import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { alarmText } from '../../../../core/diagnosis/alarm.ts';
import { diagnose, rolledBack, undiagnosed } from '../../../../core/diagnosis/diagnose.ts';
import { now } from '../../../../core/diagnosis/series.ts';
import type { GapBin } from '../../../../core/requests/learner.ts';
import { SIGNALS, signalsOf } from '../../../../core/diagnosis/signals.ts';
import type { Signals } from '../../../../core/diagnosis/signals.ts';
import type { DiagnosisSetting } from '../../../../core/diagnosis/diagnosis.ts';
import { alarmsOf, factsOf, setting, stageOf } from './stages.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

const looping = (step: number) => factsOf(step, { repeated: 0.9 });
const fine = (step: number) => factsOf(step, { repeated: 0 });
const steps = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

describe('no alarm', () => {
  const clipping = steps(60).map((step) => factsOf(step, { gradientNorm: 1, clipped: 0.6 }));
  const far = steps(60).map((step) => factsOf(step, { gradientNorm: 1, kl: 3 / step ** 0.3 }));

  test('is raised by a clip of whole sequences, by bounds that a good part of them is beyond', () => {
    expect(alarmsOf(clipping).map(({ name }) => name)).toContain('kl-blow-up');
    expect(alarmsOf(clipping, { clipsSequences: true })).toEqual([]);
  });

  test('is raised by a student that begins far from its teachers', () => {
    expect(alarmsOf(far).map(({ name }) => name)).toContain('kl-blow-up');
    expect(alarmsOf(far, { klTo: 'teachers' })).toEqual([]);
  });

  test('is raised by a policy whose gradient is there for the first time after the critic was trained alone', () => {
    const stage = steps(60).map((step) => {
      const facts = factsOf(step, {
        gradientNorm: 1,
        success: 0.5,
        variance: step <= 20 ? 0.2 : 0.05,
        entropy: step <= 20 ? 1 : 0.3,
        duplicates: 0.1,
      });
      if (step <= 10) facts.learner!.gradientNorm = null;
      return facts;
    });
    expect(alarmsOf(stage)).toEqual([]);
  });

  test('of no contrast is raised where a method has something to learn without it', () => {
    const named = (success: number, contrast: DiagnosisSetting['contrast']) =>
      alarmsOf(
        steps(30).map((step) => factsOf(step, { equal: 0.97, success })),
        { contrast },
      ).map(({ name }) => name);
    // Each task is solved by all samples or by none, and half of them are: that is contrast between tasks.
    expect(named(0.5, 'task')).toContain('no-contrast');
    expect(named(0.5, 'step')).toEqual([]);
    expect(named(0.02, 'step')).toContain('no-contrast');
    // A teacher, or a hint, teaches what no sample can do.
    expect(named(0, 'none')).toEqual([]);
  });

  test('of entropy is raised by a temperature that the spec lowers, and it is told again from where that stays', () => {
    const cooling = (step: number) => Math.max(0.05, 1 - step / 30);
    const collapsing = (step: number) => (step < 60 ? cooling(step) : 0.001);
    const of = (entropy: (step: number) => number) => {
      let diagnosed = undiagnosed();
      return steps(80).flatMap((step) => {
        const told = { ...setting, temperatureMoves: step <= 30 };
        const result = diagnose(diagnosed, factsOf(step, { entropy: entropy(step), success: 0.5 }), told);
        diagnosed = result.diagnosed;
        return result.alarms.map(({ name, stageStep }) => [name, stageStep]);
      });
    };
    expect(of(cooling)).toEqual([]);
    expect(of(collapsing)).toEqual([['entropy-collapse', 64]]);
  });

  /** A stage whose tasks are drawn by p (1 − p): first the short ones, then those of three calls. */
  const climbing = (long: (step: number) => number) =>
    steps(80).map((step) => {
      const part = Math.min(0.95, 0.1 + step / 60);
      const success = 0.5;
      const arms = { short: 0.5 + Math.min(0.45, step / 60), long: long(step) };
      return {
        ...factsOf(step, { success, length: 20 * (1 - part) + 60 * part }),
        estimates: {
          'calculator-1': { successes: (1 - part) * 100 * arms.short, trials: (1 - part) * 100 },
          'calculator-3': { successes: part * 100 * arms.long, trials: part * 100 },
        },
      };
    });

  test('of length is raised where longer tasks are drawn as the short ones are solved, and each arm gets better', () => {
    expect(alarmsOf(climbing((step) => Math.min(0.6, 0.05 + step / 100)))).toEqual([]);
    expect(alarmsOf(climbing(() => 0.05))[0]?.name).toBe('length-explosion');
  });
});

describe('a direction', () => {
  const named = (signals: (step: number) => Partial<Signals>, count = 80) =>
    alarmsOf(steps(count).map((step) => factsOf(step, signals(step)))).map(({ name, stageStep }) => [
      name,
      stageStep,
    ]);
  /** Up and down, as the figures of few episodes go. */
  const restless = (step: number) => [-1, 0.4, 0.9, -0.6, 1, -0.2, -0.9, 0.4][step % 8]!;
  const until = (step: number, last: number) => Math.min(step, last) / last;

  test('of success tells a policy that is sure from one that has stopped to choose', () => {
    const entropy = (step: number) => Math.max(0.02, 1 - step / 30);
    // Its samples differ as much as its success lets them.
    const sure = (step: number) => {
      const success = 0.3 + 0.55 * until(step, 40);
      return { entropy: entropy(step), success, variance: success * (1 - success) };
    };
    expect(named(sure)).toEqual([]);
    expect(named((step) => ({ ...sure(step), variance: step < 30 ? 0.2 : 0.01 }))[0]).toEqual([
      'entropy-collapse',
      34,
    ]);
    expect(named((step) => ({ ...sure(step), success: 0.3 }))[0]).toEqual(['entropy-collapse', 31]);
  });

  test('of length is seen where it grows after success has risen, and then stands', () => {
    const learnt = (step: number) => ({ success: 0.3 + 0.4 * until(step, 30), length: step > 40 ? 60 : 20 });
    expect(named(learnt)[0]).toEqual(['length-explosion', 52]);
    const pays = (step: number) => ({ ...learnt(step), success: 0.3 + 0.6 * until(step, 60) });
    expect(named(pays)).toEqual([]);
  });

  test('is none where so few episodes tell of it that it may be chance', () => {
    const few = (step: number) => ({
      success: 0.5 + 0.2 * restless(step),
      length: 20 + 16 * until(step, 40),
      unknown: Math.max(0, 0.04 + 0.06 * restless(step)),
    });
    expect(named(few)).toEqual([]);
    // The same in the mean, of many.
    expect(named(() => ({ unknown: 0.06 }))[0]).toEqual(['tool-hallucination', 40]);
    expect(named((step) => ({ success: 0.5, length: 20 + 16 * until(step, 40) }))[0]?.[0]).toBe(
      'length-explosion',
    );
  });

  test('of contrast: nine groups of ten by chance are not nine of ten', () => {
    const alike = (step: number) => ({ success: 0.5, equal: 0.9 + 0.1 * restless(step) });
    expect(named(alike)).toEqual([]);
    expect(named(() => ({ success: 0.5, equal: 0.92 }))[0]).toEqual(['no-contrast', 5]);
  });
});

describe('an alarm', () => {
  test('is raised once, and once more where it still holds after twenty steps', () => {
    expect(alarmsOf(steps(50).map(looping)).map(({ stageStep }) => stageStep)).toEqual([5, 25, 45]);
  });

  test('is new where it was gone for a whole window', () => {
    const stage = steps(60).map((step) => (step <= 6 || step >= 30 ? looping(step) : fine(step)));
    // The reference of the stage has loops by then, so half of the calls are the limit either way.
    expect(alarmsOf(stage).map(({ stageStep }) => stageStep)).toEqual([5, 34, 54]);
  });

  test('is a line that has the figures, where they began, their limits, and what to do', () => {
    const stage = steps(20).map((step) => factsOf(step, { repeated: step <= 8 ? 0.02 : 0.4 }));
    const [alarm] = alarmsOf(stage);
    expect(alarmText(alarm!)).toMatch(
      /^loops: part of calls that the episode has made before, with the same result: 0\.4 \(at first 0\.02, limit 0\.2\)\. Let repeated calls/,
    );
  });
});

describe('what is remembered', () => {
  const after = (facts: readonly ReturnType<typeof factsOf>[]) =>
    facts.reduce((diagnosed, step) => diagnose(diagnosed, step, setting).diagnosed, undiagnosed());

  test('fits into the state of a stage, however long it is', () => {
    const sizes = [50, 500].map(
      (count) => JSON.stringify(after(stageOf(1, undefined, { steps: count }))).length,
    );
    expect(Math.max(...sizes)).toBeLessThan(4608);
  });

  test('says the same after it has been carried elsewhere as JSON', () => {
    const stage = stageOf(3, (healthy, step) => (step > 20 ? { unknown: 0.3 } : healthy), { steps: 60 });
    let diagnosed = undiagnosed();
    const alarms = stage.flatMap((facts) => {
      const result = diagnose(diagnosed, facts, setting);
      diagnosed = JSON.parse(JSON.stringify(result.diagnosed));
      return result.alarms;
    });
    expect(alarms).toEqual(alarmsOf(stage));
    expect(alarms.length).toBeGreaterThan(0);
  });

  test('of the latest steps is forgotten with a roll-back, and what the stage began with is not', () => {
    const before = after(steps(20).map(looping));
    const back = rolledBack(before);
    expect(back.standing).toEqual({});
    expect(now(back.series, 'repeated')).toBeNull();
    expect(back.series.first).toEqual(before.series.first);
  });
});

describe('a rate that is too high', () => {
  const named = (signals: (step: number) => Partial<Signals>, count = 60) =>
    alarmsOf(steps(count).map((step) => factsOf(step, { success: 0.02, ...signals(step) }))).map(
      ({ name, stageStep }) => [name, stageStep],
    );

  test('is named where nearly every episode is cut off and nearly every call fails, and stays so', () => {
    const broken = () => ({ truncated: 0.947, errors: 0.98 });
    expect(named(broken, 12)).toEqual([
      ['truncation', 8],
      ['tool-errors', 8],
    ]);
    // Still there after twenty steps.
    expect(named(broken, 30).map(([, step]) => step)).toEqual([8, 8, 28, 28]);
  });

  test('is no alarm while it fades: a policy begins clumsy and learns its tools', () => {
    const fading = (from: number, slowness: number) => (step: number) => {
      const left = from * Math.exp(-step / slowness);
      return { unknown: left / 4, errors: left, truncated: left };
    };
    expect(named(fading(0.8, 30), 200)).toEqual([]);
    expect(named(fading(0.8, 90), 200)).toEqual([]);
  });

  test('is named where it grows, and where it stays on a level that is harmless for a while', () => {
    expect(named((step) => ({ unknown: step < 20 ? 0.01 : 0.12 }))[0]).toEqual(['tool-hallucination', 24]);
    expect(named(() => ({ unknown: 0.12 }))[0]).toEqual(['tool-hallucination', 40]);
    expect(named(() => ({ unknown: 0.03, errors: 0.4, truncated: 0.4 }))).toEqual([]);
  });

  test('is named again where it comes down no more', () => {
    const stuck = (step: number) => ({ truncated: Math.max(0.6, 0.95 - step / 40) });
    expect(named(stuck)[0]).toEqual(['truncation', 40]);
  });
});

test('a stage that began with an earlier version, which knew fewer signals, goes on', () => {
  const old = JSON.parse(JSON.stringify(undiagnosed())) as ReturnType<typeof undiagnosed>;
  const { marks: _, ...series } = old.series;
  for (const part of [series.first, series.recent]) delete (part as Partial<typeof part>).errors;
  let diagnosed = { ...old, series: series as typeof old.series };
  const alarms = steps(10).flatMap((step) => {
    const result = diagnose(diagnosed, factsOf(step, { errors: 0.9 }), setting);
    diagnosed = result.diagnosed;
    return result.alarms.map(({ name }) => name);
  });
  expect(alarms).toEqual(['tool-errors']);
});

describe('a gap at some positions alone', () => {
  const learnt = (...bins: GapBin[]) => {
    const facts = factsOf(1, { gradientNorm: 1, gap: 0.01 });
    facts.learner!.logprobGapByPosition = bins;
    return facts;
  };
  const alarmsOfThree = (...bins: GapBin[]) =>
    alarmsOf([1, 2, 3].map((step) => ({ ...learnt(...bins), step, stageStep: step })));
  const near = { from: 0, tokens: 1000, mean: 1e-6 };

  test('is named, though the mean of all is small', () => {
    const [alarm, ...others] = alarmsOfThree(near, { from: 1024, tokens: 64, mean: 0.4 });
    expect(others).toEqual([]);
    expect(alarm).toMatchObject({ name: 'missing-mask', evidence: [{ now: 0.4, limit: 0.1 }] });
    expect(alarm!.evidence[0]!.what).toContain('at the positions or lengths where it is widest');
  });

  test('of a few tokens is none', () => {
    expect(alarmsOfThree(near, { from: 1024, tokens: 63, mean: 0.4 })).toEqual([]);
  });
});

describe('whatever a step lacks', () => {
  const lacking = fc.record(
    Object.fromEntries(
      SIGNALS.map((signal) => [signal, fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: null })]),
    ),
  ) as fc.Arbitrary<Signals>;

  test('nothing is thrown, and no evidence is not a number', () => {
    fc.assert(
      fc.property(fc.array(lacking, { maxLength: 40 }), (all) => {
        const alarms = alarmsOf(all.map((signals, i) => factsOf(i + 1, signals)));
        for (const { evidence } of alarms) {
          expect(evidence.length).toBeGreaterThan(0);
          for (const { now, limit } of evidence)
            expect(Number.isFinite(now) && Number.isFinite(limit)).toBe(true);
        }
      }),
      { numRuns: propertyRuns(50) },
    );
  });

  test('a step without rollout, batch and learner has no signals', () => {
    expect(
      Object.values(signalsOf({ rollout: null, batch: null, learner: null })).every((x) => x === null),
    ).toBe(true);
  });

  test('figures that are no numbers are missing, not large', () => {
    const signals = signalsOf(factsOf(1, { gradientNorm: Infinity, gap: NaN, kl: NaN, entropy: NaN }));
    expect([signals.gradientNorm, signals.gap, signals.kl, signals.entropy]).toEqual([
      null,
      null,
      null,
      null,
    ]);
  });

  test('what was not measured is not known: a critic that is trained alone, episodes that are stored ones', () => {
    const facts = factsOf(1, { gradientNorm: 2, length: 30 });
    Object.assign(facts.learner!, { gradientNorm: null, entropy: null, kl: null, clipFraction: null });
    Object.assign(facts.rollout!, { sampledTokens: 0, sampledLogprob: 0 });
    const { gradientNorm, kl, clipped, length, entropy } = signalsOf(facts);
    expect([gradientNorm, kl, clipped, length, entropy]).toEqual([null, null, null, null, null]);
  });

  test('of a tree the groups whose rewards are equal are those that it has grown to', () => {
    const facts = factsOf(1, { equal: 1 });
    const batch = { sequences: 8, tokens: 8, maskedTokens: 8, degenerateGroups: 1, trees: 4 };
    expect(signalsOf({ ...facts, batch }).equal).toBe(0.25);
    expect(signalsOf({ ...facts, batch: { ...batch, trees: 0, degenerateGroups: 0 } }).equal).toBeNull();
  });

  test('signals come back from the facts that were made of them', () => {
    const signals: Signals = {
      reward: 0.5,
      success: 0.25,
      excess: 0.125,
      variance: 0.125,
      equal: 0.5,
      entropy: 0.75,
      gradientNorm: 2,
      staleness: 1.5,
      kl: 0.5,
      clipped: 0.25,
      gap: 0.125,
      widestGap: 0.25,
      effective: 0.75,
      learnt: 1,
      besides: 0.25,
      length: 32,
      truncated: 0.25,
      unknown: 0.25,
      errors: 0.5,
      repeated: 0.125,
      duplicates: 0.5,
      echoed: 0.25,
    };
    const facts = factsOf(1, signals);
    facts.learner!.clipFraction = 0.25;
    expect(signalsOf(facts)).toEqual(signals);
  });
});
