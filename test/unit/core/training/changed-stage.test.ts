import { expect, test } from 'vitest';
import type { StepEscalation, EscalatedStep } from '../../../../core/ports.ts';
import { nothingChanged, withChange } from '../../../../core/run-change.ts';
import type { Changed, StoredChange, RunChange } from '../../../../core/run-change.ts';
import { trainStage } from '../../../../core/training/stage.ts';
import type { StageState } from '../../../../core/training/stage.ts';
import { tierSpec } from '../../../support/tier-specs.ts';
import { ScriptedTraining, stageInput, stageSpec } from './scripted-training.ts';

/** A person changes the run while the gate before a step is passed: by the steps that are done then. */
class ChangedTraining extends ScriptedTraining {
  readonly escalations: StepEscalation[] = [];
  private readonly byStep: Record<number, RunChange>;
  private all: Changed = nothingChanged();

  constructor(byStep: Record<number, RunChange>) {
    super({ heldOut: [0.5] });
    this.byStep = byStep;
  }

  gate = async ({ step }: StageState): Promise<'go'> => {
    const change = this.byStep[step];
    if (change) this.all = withChange(this.all, { number: this.all.newest + 1, ...change } as StoredChange);
    return 'go';
  };

  changed(): Changed {
    return this.all;
  }

  override async escalate(request: StepEscalation): Promise<EscalatedStep> {
    this.escalations.push(request);
    const [groups] = this.rollouts.slice(-1);
    return { groups: await super.rollout(groups!), offered: [], moves: [], spans: [] };
  }
}

const near = tierSpec('near', 'simulation', { budget: { count: 4, usd: 9 } });
const exact = tierSpec('exact', 'high-fidelity', { budget: { count: 1 } });
const verification = {
  rungs: [tierSpec('is-number', 'fast'), near, exact],
  offerLateFor: 0,
  counts: 'verdicts' as const,
  evaluateBy: 'is-number',
};

async function train(byStep: Record<number, RunChange>) {
  const ports = new ChangedTraining(byStep);
  const input = stageInput(
    // Measured after the last step only.
    {
      maxSteps: 4,
      budgets: { exact: { count: 2 } },
      graduation: { ...stageSpec.graduation, everySteps: 100 },
    },
    { verification },
  );
  const { end, reason, steps } = await trainStage(ports, input, null, ports.gate);
  return { ports, end, reason, steps };
}

test('a stage that is given more steps takes them, and one that is cut short ends where it stands', async () => {
  expect(await train({})).toMatchObject({ reason: '4 steps are done', steps: 7 });
  const longer = await train({ 2: { maxSteps: { rl: 6, other: 1 } } });
  expect(longer).toMatchObject({ end: 'exhausted', reason: '6 steps are done', steps: 9 });
  expect(longer.ports.facts.map(({ maxSteps, change }) => [maxSteps, change])).toEqual([
    [4, undefined],
    [4, undefined],
    ...Array.from({ length: 4 }, () => [6, 1]),
  ]);
  expect(await train({ 3: { maxSteps: { rl: 2 } } })).toMatchObject({ reason: '3 steps are done', steps: 6 });
});

test('a budget is the changed one from the next step on: what a change does not name stays as the stage has it', async () => {
  const { ports } = await train({
    1: { budgets: { exact: { count: 8 } } },
    2: { budgets: { near: { usd: null, seconds: 60 } } },
    3: { budgets: { exact: { usd: 1 }, 'no-rung': { count: 1 } } },
  });
  const changed = { count: 4, seconds: 60 };
  expect(ports.escalations.map(({ budgets }) => budgets)).toEqual([
    { exact: { count: 2 } },
    { exact: { count: 8 } },
    { exact: { count: 8 }, near: changed },
    { exact: { count: 8, usd: 1 }, near: changed },
  ]);
  expect(ports.facts.map(({ change }) => change)).toEqual([undefined, 1, 2, 3]);
});
