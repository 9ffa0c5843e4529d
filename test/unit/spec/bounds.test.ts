import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { batchKey, ledgerKey, metricsKey, rolloutKey, runKey } from '../../../store/keys.ts';
import { evaluationTasks, shareOut } from '../../../core/training/evaluation.ts';
import { HELD_OUT, ids } from '../../../core/names.ts';
import { drawTasks } from '../../../core/training/task-draw.ts';
import type { CurriculumSpec } from '../../../core/schema/curriculum-spec.ts';
import { checkpoint } from '../core/training/scripted-training.ts';
import { environments, problemsOf } from './problems-of.ts';
import { propertyRuns } from '../../support/property-runs.ts';

const tasks = [{ environment: 'calculator', levels: [1, 2] }];

/** A spec with other fields, or other ones in its warm start or its RL stage. */
const specWith = (over: { stage?: object; warmStart?: object; [field: string]: unknown }) => {
  const { stage, warmStart, ...rest } = over;
  return {
    reward: { components: [{ verifier: 'exact-match', role: 'outcome' }] },
    stages: [
      { kind: 'supervised', name: 'warm', tasks, graduation: { successAtLeast: 0.4 }, ...warmStart },
      { name: 'rl', tasks, maxSteps: 10, graduation: { successAtLeast: 0.5 }, ...stage },
    ],
    evaluation: { tasks, count: 100 },
    ...rest,
  };
};

describe('what could not be carried out is refused, with what to do:', () => {
  test.each([
    ['groupsPerStep of ten million', { stage: { groupsPerStep: 1e7 } }, 'at most 32768: take more steps'],
    ['groupsPerWorkflow of 30,000', { stage: { groupsPerWorkflow: 30_000 } }, 'at most 512'],
    [
      'too many episodes a step',
      { stage: { groupsPerStep: 32_768, numGenerations: 16, groupsPerWorkflow: 512 } },
      'stages[1].groupsPerStep: makes 524288 episodes a step',
    ],
    [
      'too many workflows a step',
      { stage: { groupsPerStep: 4096, groupsPerWorkflow: 1 } },
      'stages[1].groupsPerWorkflow: makes 4096 child workflows of the 4096 tasks of a step, at most 1000: raise it',
    ],
    ['steps without end', { stage: { maxSteps: 1e15 } }, 'stages[1].maxSteps: must be at most 1000000'],
    ['a name with two dots in a row', { stage: { name: 'a..b' } }, 'stages[1].name: use letters'],
    ['a name that ends with a dot', { stage: { name: 'rl.' } }, 'stages[1].name: use letters'],
    ['a stage called ladder', { stage: { name: 'ladder' } }, '"ladder" is reserved for a part'],
    ['a stage called Report', { stage: { name: 'Report' } }, 'is reserved for a part'],
    [
      'two stages of one name',
      { stage: { name: 'Warm' } },
      'stages[1].name: "Warm" is the name of an earlier',
    ],
    ['a run with two dots in a row', { run: 'a..b' }, 'run: use letters'],
    ['a giant model', { model: { hiddenSize: 16_384, layers: 100 } }, 'billion parameters, at most 1'],
    [
      'a giant round of warm start',
      { warmStart: { minibatch: 8192, updatesPerRound: 10_000 } },
      'stages[0].updatesPerRound: makes 81920000 demonstrations a round',
    ],
    ['an endless wait', { sampling: { maxTurns: 1e9 } }, 'sampling.maxTurns: must be at most 1000'],
  ])('%s', (_, over, message) => {
    expect(problemsOf(specWith(over)).join('\n')).toContain(message);
  });
});

test('a field that nobody wrote is called missing, and not of the wrong type', () => {
  const { maxSteps: _, ...stage } = specWith({}).stages[1] as { maxSteps?: number };
  expect(problemsOf({ ...specWith({}), stages: [{ ...stage, maxStep: 10 }] })).toEqual([
    'stages[0].maxSteps: is missing: expected number',
    'stages[0].maxStep: unknown field; did you mean "maxSteps"?',
  ]);
  expect(problemsOf(undefined)[0]).toContain('(the curriculum spec): is missing: expected object');
  expect(problemsOf([])[0]).toContain('(the curriculum spec): expected object, received array');
});

/** Mostly what is usual, now and then what is at the edge of what is taken, or beyond it. */
const mostly = (usual: [number, number], ...edges: number[]) =>
  fc.oneof(
    { weight: 12, arbitrary: fc.integer({ min: usual[0], max: usual[1] }) },
    { weight: 1, arbitrary: fc.constantFrom(-1, 0, ...edges) },
  );
const anyName = fc.oneof(
  { weight: 12, arbitrary: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,9}(\.[a-z0-9]{1,4})?$/) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('a..b', 'rl.', '.x', 'ladder', 'x'.repeat(100), 'x'.repeat(101)),
  },
  { weight: 1, arbitrary: fc.string({ maxLength: 12 }) },
);
/** Specs of which many are taken, some at the very edge of what is. */
const written = fc
  .record({
    run: anyName,
    name: anyName,
    groupsPerStep: mostly([1, 300], 32_768, 32_769, 1e7),
    groupsPerWorkflow: mostly([1, 64], 512, 513, 30_000),
    numGenerations: mostly([2, 64], 4096, 1e9),
    maxSteps: mostly([1, 3000], 1e6, 1e6 + 1, Number.MAX_SAFE_INTEGER),
    heldOut: mostly([2, 200], 1e5, 1e5 + 1),
    everySteps: mostly([1, 50], 1e6),
    count: mostly([2, 200], 1e5),
    retryFailures: fc.constantFrom(0, 0.125, 1),
  })
  .map(({ run, name, heldOut, everySteps, count, ...stage }) =>
    specWith({
      run,
      stage: { ...stage, name, graduation: { successAtLeast: 0, tasks: heldOut, everySteps } },
      evaluation: { tasks, count },
    }),
  );

/** What Temporal takes as a workflow's id, bytes. */
const LONGEST_ID = 1000;
/** What tests let through to Temporal, bytes. */
const LARGEST_PAYLOAD = 64 * 1024;

/** The cheap part of what the run will do at its first and its last step. */
function plan(spec: Omit<CurriculumSpec, 'model'>): void {
  runKey(`${spec.run}.1000`);
  ledgerKey(spec.run, 'run', 1);
  for (const stage of spec.stages) {
    if (stage.kind !== 'rl') continue;
    for (const step of [1, stage.maxSteps]) {
      const drawn = drawTasks({
        ...stage,
        seed: 1,
        stage: stage.name,
        step,
        count: stage.groupsPerStep,
        estimates: {},
        failures: [],
        tasksBefore: 0,
      });
      const groups = shareOut(drawn.tasks, stage.groupsPerWorkflow, {
        run: spec.run,
        seed: spec.seed,
        stage: stage.name,
        step,
        samples: stage.numGenerations,
        checkpoint: checkpoint('x'.repeat(64), step),
        sampling: spec.sampling,
        reward: spec.reward,
      });
      expect(groups.length).toBeLessThanOrEqual(1000);
      expect(JSON.stringify(groups[0]).length).toBeLessThan(LARGEST_PAYLOAD);
      for (const { group } of [groups[0]!, groups.at(-1)!]) {
        expect(ids.group(spec.run, stage.name, step, group).length).toBeLessThan(LONGEST_ID);
        rolloutKey(spec.run, stage.name, step, `group-${group}`);
      }
      batchKey(spec.run, stage.name, step);
      metricsKey(spec.run, `${stage.name}${HELD_OUT}`, step);
    }
    const others = [ids.ladder(spec.run), ids.evaluation(spec.run, 'before/0')];
    expect(others).not.toContain(ids.stage(spec.run, stage.name));
    const heldOut = { arms: stage.arms, tasks: stage.graduation.tasks, split: 'heldout' as const };
    expect(evaluationTasks(heldOut)).toHaveLength(stage.graduation.tasks);
  }
}

test('random specs are refused clearly, or can be planned to their last step', () => {
  let taken = 0;
  fc.assert(
    fc.property(written, (one) => {
      let spec;
      try {
        spec = parseSpec(one, 'run', environments);
      } catch (error) {
        expect(error).toMatchObject({ name: 'GradusError', boundary: 'spec', retryable: false });
        return;
      }
      taken++;
      plan(spec);
    }),
    { numRuns: propertyRuns(5000) },
  );
  expect(taken).toBeGreaterThan(propertyRuns(1000));
});
