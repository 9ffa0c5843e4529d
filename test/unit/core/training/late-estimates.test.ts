import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Decision, Question } from '../../../../core/question.ts';
import { noCounts } from '../../../../core/training/evaluation.ts';
import { noOutcomes } from '../../../../core/episode/outcome.ts';
import type { StepEscalation, EscalatedStep } from '../../../../core/ports.ts';
import type { RlStageSpec } from '../../../../core/schema/stages/rl.ts';
import { trainStage } from '../../../../core/training/stage.ts';
import type { StageInput, StageState } from '../../../../core/training/stage.ts';
import { drawTasks } from '../../../../core/training/task-draw.ts';
import { arm, ScriptedTraining, stageInput, stageSpec } from './scripted-training.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

// What a stage knows of its arms when verdicts come late, against what it would know had they come in time.

const STEPS = 8;
const TRIALS = 8;

/** The verdicts of a step: what counts at first, what it comes to, and how many steps later. */
interface Verdicts {
  level: number;
  first: { successes: number; trials: number };
  final: { successes: number; trials: number };
  delay: number;
}

class LateTraining extends ScriptedTraining {
  private readonly verdicts: readonly Verdicts[];
  private readonly inTime: boolean;

  constructor(verdicts: readonly Verdicts[], { inTime }: { inTime: boolean }) {
    // A step in which nothing can be judged asks a person, who goes on.
    super({ heldOut: [0.5] });
    this.verdicts = verdicts;
    this.inTime = inTime;
  }

  /** Goes on for as long as there are steps. */
  override async ask<D extends Decision>({ answers }: Question<D>): Promise<D> {
    return answers[0]!.answer;
  }

  override async escalate({ stage, step, groups }: StepEscalation): Promise<EscalatedStep> {
    const { level, first, final } = this.verdicts[step - 1]!;
    const counted = [{ arm: arm(level), ...(this.inTime ? final : first) }];
    const moves = this.verdicts.flatMap((verdict, i) => {
      const from = i + 1;
      if (this.inTime || from + verdict.delay !== step || verdict.delay === 0) return [];
      const successes = verdict.final.successes - verdict.first.successes;
      const trials = verdict.final.trials - verdict.first.trials;
      return [{ arm: arm(verdict.level), successes, trials, stage, step: from }];
    });
    return {
      groups: groups.map((trajectories, i) => ({
        trajectories,
        ...noCounts(),
        arms: i === 0 ? counted : [],
        outcomes: { ...noOutcomes(), scored: TRIALS },
        spans: [],
      })),
      offered: [],
      moves,
      spans: [],
    };
  }
}

const input = (over: Partial<RlStageSpec> = {}): StageInput =>
  stageInput(
    {
      maxSteps: STEPS,
      graduation: { ...stageSpec.graduation, everySteps: STEPS },
      ...over,
    },
    { verification: { rungs: [], offerLateFor: 8, counts: 'computations', evaluateBy: 'cheap' } },
  );

/** The estimates after each step. */
async function estimatesOf(ports: ScriptedTraining) {
  const after: StageState['estimates'][] = [];
  await trainStage(ports, input(), null, async (state) => {
    after.push(state.estimates);
    return 'go';
  });
  return [...after.slice(1), ports.reports.at(-1)!.estimates];
}

const count = fc
  .tuple(fc.nat(TRIALS), fc.nat(TRIALS))
  .map(([a, b]) => ({ successes: Math.min(a, b), trials: Math.max(a, b) }));
const verdicts = fc.array(
  fc.record({
    level: fc.constantFrom(1, 2),
    first: count,
    final: count,
    delay: fc.integer({ min: 1, max: STEPS - 1 }),
  }),
  { minLength: STEPS, maxLength: STEPS },
);

test('an estimate with late verdicts is what it would have been had they come in time, and never negative', async () => {
  await fc.assert(
    fc.asyncProperty(verdicts, async (all) => {
      const late = await estimatesOf(new LateTraining(all, { inTime: false }));
      const inTime = await estimatesOf(
        new LateTraining(
          // What comes after the last step is never heard of.
          all.map((one, i) => (i + 1 + one.delay > STEPS ? { ...one, final: one.first } : one)),
          { inTime: true },
        ),
      );
      for (const step of late) {
        for (const { successes, trials } of Object.values(step)) {
          expect(successes).toBeGreaterThanOrEqual(0);
          expect(trials).toBeGreaterThanOrEqual(successes);
        }
      }
      const last = late.at(-1)!;
      for (const [name, { successes, trials }] of Object.entries(inTime.at(-1)!)) {
        expect(last[name]?.successes ?? 0).toBeCloseTo(successes, 9);
        expect(last[name]?.trials ?? 0).toBeCloseTo(trials, 9);
      }
    }),
    { numRuns: propertyRuns(60) },
  );
});

test('a verdict on what an earlier stage rolled out moves nothing in this one, and no arm takes all tasks', async () => {
  const none = { successes: 0, trials: 0 };
  const quiet: Verdicts = { level: 1, first: none, final: none, delay: 0 };
  class AfterStage extends LateTraining {
    override async escalate(request: StepEscalation): Promise<EscalatedStep> {
      const escalated = await super.escalate(request);
      const gone = { arm: arm(1), successes: -40, trials: 0, stage: 'before', step: 30 };
      return { ...escalated, moves: request.step === 1 ? [gone] : [] };
    }
  }
  const ports = new AfterStage(
    Array.from({ length: STEPS }, () => quiet),
    { inTime: false },
  );
  const after = await estimatesOf(ports);
  for (const step of after) expect(Object.values(step).every(({ successes }) => successes >= 0)).toBe(true);
  const { tasks } = drawTasks({
    seed: 1,
    stage: 'rl',
    step: 9,
    arms: [arm(1), arm(2), arm(3)],
    count: 3000,
    estimates: after[0]!,
    failures: [],
    tasksBefore: 0,
    retryFailures: 0,
  });
  for (const level of [1, 2, 3]) {
    expect(tasks.filter((task) => task.level === level).length).toBeGreaterThan(500);
  }
});
