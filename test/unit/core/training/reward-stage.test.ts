import { describe, expect, test } from 'vitest';
import type { RewardPorts } from '../../../../core/ports.ts';
import type { RewardBatchRequest, RewardQualityRequest } from '../../../../core/requests/reward-model.ts';
import type { RewardStageSpec } from '../../../../core/schema/stages/reward.ts';
import { trainRewardStage } from '../../../../core/training/reward-stage.ts';
import type { RewardStageState } from '../../../../core/training/reward-stage.ts';
import { arm, checkpoint, go, optimizer, reward, ScriptedTraining } from './scripted-training.ts';
import type { Script } from './scripted-training.ts';

const stage: RewardStageSpec = {
  kind: 'reward',
  name: 'judge',
  arms: [arm(1)],
  episodes: { stage: 'rl' },
  labels: 'outcomes',
  pairsPerTask: 4,
  models: 2,
  maxEpisodes: 100,
  heldOut: 0.2,
  minibatch: 8,
  maxRounds: 2,
  optimizer,
  graduation: { aucAtLeast: 0.8, calibrationErrorAtMost: 0.1 },
};

/** What is asked of a reward stage besides, with what is measured after each round. */
class ScriptedReward extends ScriptedTraining implements RewardPorts {
  readonly rewardBatches: RewardBatchRequest[] = [];
  readonly measured: RewardQualityRequest[] = [];
  asked = 0;
  private readonly found: { auc: number | null; calibrationError?: number }[];

  constructor(found: ScriptedReward['found'], script: Partial<Script> = {}) {
    super({ heldOut: [], ...script });
    this.found = found;
  }
  async rewardExamples() {
    this.asked++;
    return { examples: { key: 'examples', sha256: 'e', bytes: 1 }, train: 80, heldOut: 20, spans: [] };
  }
  async rewardBatch(request: RewardBatchRequest) {
    this.rewardBatches.push(request);
    return this.demonstrations({} as never);
  }
  async rewardQuality(request: RewardQualityRequest) {
    this.measured.push(request);
    const { auc, calibrationError = 0.05 } = this.found[this.measured.length - 1]!;
    const rest = { episodes: 20, successes: 8, accuracy: 0.9, brier: 0.1, uncertainty: 0.02 };
    return { quality: { ...rest, auc, calibrationError }, spans: [] };
  }
}

const input = {
  spec: { run: 'run', seed: 1, reward, retention: { keepLast: 1, keepBest: 0, keepEvery: 0 } },
  stage,
  checkpoint: checkpoint('policy', 4),
  reference: checkpoint('reference', 2),
  stepsBefore: 4,
  others: [checkpoint('other')],
};
const run = async (
  ports: ScriptedReward,
  gate: (state: RewardStageState) => Promise<'go' | 'stop'> = go,
  from: RewardStageState | null = null,
) => ({ ports, result: await trainRewardStage(ports, input, from, gate) });

describe('a reward stage', () => {
  test('trains its models in turn, each from the policy and then on its own, until they tell', async () => {
    const { ports, result } = await run(new ScriptedReward([{ auc: 0.7 }, { auc: 0.9 }]));
    expect(result).toMatchObject({ end: 'graduated', checkpoint: checkpoint('policy', 4), steps: 8 });
    expect(result.rewardModels).toEqual([checkpoint('judge-3', 7), checkpoint('judge-4', 8)]);
    expect(ports.asked).toBe(1);
    expect(ports.rewardBatches.map(({ step, model }) => [step, model])).toEqual([
      [1, 0],
      [2, 1],
      [3, 0],
      [4, 1],
    ]);
    expect(ports.trained.map(({ parent }) => parent.weights)).toEqual([
      'policy',
      'policy',
      'judge-1',
      'judge-2',
    ]);
    expect(
      ports.trained.map(({ resetOptimizer, critic }) => [resetOptimizer, critic!.anew ?? false]),
    ).toEqual([
      [true, true],
      [true, true],
      [false, false],
      [false, false],
    ]);
    expect(
      ports.trained.every(({ objective, critic }) => objective === null && critic!.loss === 'cross-entropy'),
    ).toBe(true);
    // No two shuffle alike.
    expect(new Set(ports.rewardBatches.map(({ updates }) => updates.seed)).size).toBe(4);
    expect(ports.measured.map(({ models }) => models.length)).toEqual([2, 2]);
  });

  test('leaves facts of each step, with its quality after each round, and keeps models and policy', async () => {
    const { ports } = await run(new ScriptedReward([{ auc: 0.7 }, { auc: 0.9 }]));
    expect(ports.facts.map(({ stageStep, maxSteps }) => [stageStep, maxSteps])).toEqual([
      [1, 4],
      [2, 4],
      [3, 4],
      [4, 4],
    ]);
    expect(ports.facts.map(({ rewardModel }) => rewardModel?.auc ?? null)).toEqual([null, 0.7, null, 0.9]);
    const pinned = ports.retained.at(-1)!.pinned.map(({ weights }) => weights);
    expect(pinned).toEqual(['policy', 'reference', 'other', 'judge-3', 'judge-4']);
  });

  test('asks a person where it does not reach its goal, and gives more rounds', async () => {
    const bad = { auc: 0.9, calibrationError: 0.4 };
    const { result } = await run(new ScriptedReward([bad, bad], { decisions: ['advance'] }));
    expect(result.end).toBe('exhausted');
    expect(result.reason).toContain('calibration error 40.0 %, at most 10.0 % wanted');
    const more = await run(
      new ScriptedReward([bad, { auc: 0.7 }, { auc: 0.95 }], { decisions: ['more-rounds'] }),
    );
    expect(more.result).toMatchObject({ end: 'graduated', steps: 10 });
  });

  test('asks at once where what is held out is all of one kind, which more rounds do not change', async () => {
    const { ports, result } = await run(new ScriptedReward([{ auc: null }], { decisions: ['advance'] }));
    expect(result).toMatchObject({ end: 'exhausted', steps: 6 });
    expect(result.reason).toContain('AUC not known');
    expect(ports.measured).toHaveLength(1);
  });

  test('goes on from what it has carried along as if it had not been cut', async () => {
    const whole = await run(new ScriptedReward([{ auc: 0.7 }, { auc: 0.9 }]));
    const states: RewardStageState[] = [];
    const first = new ScriptedReward([{ auc: 0.7 }]);
    await run(first, async (state) => {
      states.push(state);
      return state.step === 3 ? 'stop' : 'go';
    });
    const carried = JSON.parse(JSON.stringify(states.at(-1))) as RewardStageState;
    const second = await run(new ScriptedReward([{ auc: 0.9 }]), go, carried);
    expect(second.result).toEqual(whole.result);
    expect(second.ports.asked).toBe(0);
    expect([...first.rewardBatches, ...second.ports.rewardBatches]).toEqual(whole.ports.rewardBatches);
  });
});
