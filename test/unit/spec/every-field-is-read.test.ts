import { expect, test } from 'vitest';
import { z } from 'zod';
import { DIAGNOSES } from '../../../core/diagnosis/alarm.ts';
import { curriculumSchema } from '../../../core/schema/curriculum.ts';
import { samplingSchema } from '../../../core/schema/sampling.ts';
import { fieldPaths, readsIn, readsOfTheCode, unread } from '../../support/field-reads.ts';

const code = readsOfTheCode();

test('every field of the spec is read by code that acts on it', () => {
  const fields = fieldPaths(curriculumSchema);
  // Of the kinds of stages, of methods, of tiers in a list and of budgets in a record.
  expect(fields.map((field) => field.join('.'))).toEqual(
    expect.arrayContaining([
      'stages.updatesPerRound',
      'stages.algorithm.lambda',
      'stages.collapse.learningRateFactor',
      'stages.budgets.perStep',
      'verification.rungs.escalate.valueAtLeast',
      'model.lora.rsLora',
    ]),
  );
  // Read by the names in DIAGNOSES, one and all: test/unit/core/diagnosis/act.test.ts.
  const byName: string[] = DIAGNOSES.map((name) => `stages.diagnosis.${name}`);
  expect(unread(fields, code).filter((field) => !byName.includes(field))).toEqual([]);
});

test('a field that is added and that nobody reads is found, in a section, a union and a record', () => {
  const schema = curriculumSchema.extend({
    sampling: samplingSchema
      .unwrap()
      .extend({ beamWidth: z.int().default(1) })
      .prefault({}),
    stages: z.array(
      z.discriminatedUnion('kind', [
        z.strictObject({ kind: z.literal('rl'), patience: z.int().optional() }),
        z.strictObject({
          kind: z.literal('dream'),
          budgets: z.record(z.string(), z.object({ euros: z.number() })),
        }),
      ]),
    ),
  });
  const found = unread(fieldPaths(schema), code);
  expect(found).toEqual(['sampling.beamWidth', 'stages.patience', 'stages.budgets.euros']);
});

test.each([
  ['a member', 'plateau.patience > 3;', []],
  ['a member that may be absent', 'spec?.plateau?.patience;', []],
  ['a pattern', 'const { patience } = spec.plateau;', []],
  ['a pattern of a parameter, renamed', 'const f = ({ patience: p }: Plateau) => p;', []],
  ['its name in brackets', "plateau['patience'];", []],
  ['what is only written', 'plateau.patience = 3;', ['plateau.patience']],
  ['what is only made', 'const plateau = { patience: 3 };', ['plateau.patience']],
  ['what is only checked', 'function checkPlateau({ patience }) { patience > 3; }', ['plateau.patience']],
  ['what is only a type', 'type T = Pick<Plateau, "patience">;', ['plateau.patience']],
  ['the same name in something else', 'const { patience } = person;', ['plateau.patience']],
])('%s: %s', (_, source, found) => {
  expect(unread([['plateau', 'patience']], [readsIn(source)])).toEqual(found);
});
