import { describe, expect, test } from 'vitest';
import { act, asSpecified, heededText } from '../../../../core/diagnosis/act.ts';
import type { Rules } from '../../../../core/diagnosis/act.ts';
import { DIAGNOSES } from '../../../../core/diagnosis/alarm.ts';
import type { Alarm, DiagnosisName } from '../../../../core/diagnosis/alarm.ts';
import {
  afterRollback,
  alarmed,
  lastHealthy,
  withMeasurement,
  noneHealthy,
} from '../../../../core/diagnosis/healthy.ts';
import { checkpoint } from '../training/scripted-training.ts';

const alarm = (name: DiagnosisName): Alarm => ({
  name,
  stageStep: 30,
  evidence: [{ what: 'a figure', now: 2, before: 1, limit: 1.5 }],
  remedy: 'Do something.',
});

const rulesOf = (rules: Partial<Rules>): Rules => ({
  ...(Object.fromEntries(DIAGNOSES.map((name) => [name, ['note']])) as Pick<Rules, DiagnosisName>),
  temperatureFactor: 1.2,
  temperatureAtMost: 1.5,
  learningRateFactor: 0.5,
  keepGroups: 0.5,
  ...rules,
});

describe('an alarm', () => {
  test('that is only noted changes nothing', () => {
    expect(act([alarm('loops')], rulesOf({}), asSpecified())).toEqual({
      alarms: [{ ...alarm('loops'), actions: [] }],
      adjusted: asSpecified(),
      decision: null,
    });
    expect(heededText({ ...alarm('loops'), actions: [] })).toBe(
      'loops: a figure: 2 (at first 1, limit 1.5). Do something.',
    );
  });

  test('does what its rule says, and says what it did', () => {
    const rules = rulesOf({ 'echo-trap': ['explore', 'slow-down', 'filter', 'rollback'] });
    const { alarms, adjusted, decision } = act([alarm('echo-trap')], rules, asSpecified());
    expect(adjusted).toEqual({ temperatureFactor: 1.2, learningRateFactor: 0.5, keepGroups: 0.5 });
    expect(decision).toEqual({ action: 'rollback', reason: expect.stringContaining('echo-trap: a figure') });
    expect(heededText(alarms[0]!)).toMatch(/Do something\. Done: explore, slow-down, filter, rollback\.$/);
  });

  test('goes further each time, and no further than the rule says', () => {
    const rules = rulesOf({ loops: ['explore', 'slow-down', 'filter'] });
    let adjusted = asSpecified();
    for (let i = 0; i < 4; i++) ({ adjusted } = act([alarm('loops')], rules, adjusted));
    expect(adjusted).toEqual({ temperatureFactor: 1.5, learningRateFactor: 0.0625, keepGroups: 0.5 });
  });

  test('beside another one that asks for the same counts once, and a person is asked rather than gone back', () => {
    const rules = rulesOf({ loops: ['rollback', 'slow-down'], 'echo-trap': ['ask', 'slow-down'] });
    const { adjusted, decision } = act([alarm('loops'), alarm('echo-trap')], rules, asSpecified());
    expect(adjusted.learningRateFactor).toBe(0.5);
    expect(decision).toMatchObject({ action: 'ask', reason: expect.stringContaining('echo-trap') });
  });

  test.each(DIAGNOSES)('%s does what the rule of its name says, and no other does', (name) => {
    const rules = rulesOf({ [name]: ['slow-down'] });
    for (const other of DIAGNOSES) {
      const { learningRateFactor } = act([alarm(other)], rules, asSpecified()).adjusted;
      expect(learningRateFactor).toBe(other === name ? 0.5 : 1);
    }
  });

  test('no alarm, nothing', () => {
    expect(act([], rulesOf({}), asSpecified())).toEqual({
      alarms: [],
      adjusted: asSpecified(),
      decision: null,
    });
  });
});

describe('the last healthy checkpoint', () => {
  const at = (stageStep: number) => ({ checkpoint: checkpoint(`rl-${stageStep}`, stageStep), stageStep });
  const after = (...steps: number[]) =>
    steps.reduce((healthy, step) => withMeasurement(healthy, at(step)), noneHealthy());

  test('is the newest that has a window of steps without an alarm behind it', () => {
    expect(lastHealthy(after(10, 20), 25)).toEqual(at(10));
    expect(lastHealthy(after(10, 20), 28)).toEqual(at(20));
    expect(lastHealthy(after(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), 12)).toEqual(at(1));
  });

  test('is none where nothing was measured early enough', () => {
    expect(lastHealthy(noneHealthy(), 50)).toBeNull();
    expect(lastHealthy(after(10), 12)).toBeNull();
  });

  test('is none that an alarm came soon after, whenever that was gone', () => {
    // At 14 an alarm: of 10 only four steps without one were known.
    expect(lastHealthy(alarmed(after(10), 14), 30)).toBeNull();
    expect(lastHealthy(alarmed(after(1, 10), 14), 30)).toEqual(at(1));
    expect(lastHealthy(withMeasurement(alarmed(after(1, 10), 14), at(30)), 60)).toEqual(at(30));
  });

  test('stays it after later alarms', () => {
    expect(lastHealthy(alarmed(alarmed(after(10, 20), 28), 29), 40)).toEqual(at(20));
  });

  test('stays what it is after a roll-back to it', () => {
    const back = afterRollback(after(10, 20), at(10).checkpoint);
    expect(lastHealthy(back, 60)).toEqual(at(10));
    expect(lastHealthy(afterRollback(after(10, 20), at(20).checkpoint), 60)).toEqual(at(20));
  });
});
