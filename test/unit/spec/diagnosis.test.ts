import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ACTIONS } from '../../../core/diagnosis/act.ts';
import { DIAGNOSES } from '../../../core/diagnosis/alarm.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { diagnosisSchema } from '../../../core/schema/stages/diagnosis.ts';
import { environments, problemsOf } from './problems-of.ts';

/** An example, whose last stage has these rules. */
function example(name: string, diagnosis: object, over: object = {}): unknown {
  const file = new URL(`../../../examples/${name}.json`, import.meta.url);
  const spec = JSON.parse(readFileSync(file, 'utf8')) as { stages: object[]; verification?: object };
  spec.stages[spec.stages.length - 1] = { ...spec.stages.at(-1), diagnosis };
  if (spec.verification) spec.verification = { ...spec.verification, ...over };
  return spec;
}

describe('what a stage does about alarms', () => {
  test('is to note each of them, where the spec says nothing', () => {
    const rules = diagnosisSchema.parse({});
    for (const name of DIAGNOSES) expect(rules[name] ?? ['note']).toEqual(['note']);
    expect(Object.keys(rules).filter((field) => !(DIAGNOSES as readonly string[]).includes(field))).toEqual([
      'temperatureFactor',
      'temperatureAtMost',
      'learningRateFactor',
      'keepGroups',
    ]);
  });

  test('is a list of actions, any of them for any alarm but one', () => {
    for (const name of DIAGNOSES) {
      const useless = name === 'empty-batch' ? ['filter', 'slow-down'] : [];
      const actions = ACTIONS.filter((action) => !useless.includes(action));
      const { stages } = parseSpec(example('calculator', { [name]: actions }), 'run', environments);
      expect(stages.at(-1)).toMatchObject({ diagnosis: { [name]: actions } });
    }
  });

  test('is refused with the nearest name where an alarm or an action is misspelt', () => {
    expect(problemsOf(example('calculator', { 'echo-trapp': ['ask'] }))[0]).toMatch(
      /stages\[2\]\.diagnosis\.echo-trapp: .*"echo-trap"/,
    );
    expect(problemsOf(example('calculator', { 'echo-trap': ['roll-back'] }))[0]).toMatch(
      /stages\[2\]\.diagnosis\.echo-trap\[0\]: .*rollback/,
    );
  });

  test('cannot be what never helps where nothing is trained on, and that is said once', () => {
    const rules = { 'empty-batch': ['slow-down', 'filter'] };
    const problems = problemsOf(example('molecules', rules, { offerLateFor: 3 }));
    expect(problems.filter((one) => one.includes('diagnosis'))).toEqual([
      expect.stringContaining('stages[1].diagnosis.empty-batch[0]: makes updates smaller'),
      expect.stringContaining(
        'stages[1].diagnosis.empty-batch[1]: leaves groups out, and none is trained on',
      ),
    ]);
    expect(problemsOf(example('calculator', { 'empty-batch': ['ask'] }))).toEqual([]);
  });

  test('cannot be to explore where episodes of another temperature come before the learner', () => {
    const rules = { loops: ['slow-down', 'explore'] };
    expect(problemsOf(example('molecules', rules, { offerLateFor: 3 })).join('\n')).toContain(
      'stages[1].diagnosis.loops[1]: changes the temperature',
    );
    expect(problemsOf(example('molecules', rules, { offerLateFor: 0 }))).toEqual([]);
  });

  test('cannot be to leave groups out where late verdicts teach what changed since they were learnt from', () => {
    const rules = { 'no-contrast': ['filter'] };
    expect(problemsOf(example('molecules', rules, { offerLateFor: 3 })).join('\n')).toContain(
      'stages[1].diagnosis.no-contrast[0]: leaves groups out',
    );
    expect(problemsOf(example('molecules', rules, { offerLateFor: 0 }))).toEqual([]);
  });
});
