import { z } from 'zod';
import { READ_TURNS, readsTurns } from '../../algorithms/index.ts';
import { HELD_OUT, INITIALIZE } from '../../names.ts';
import type { AgentSpec } from '../agent.ts';
import type { Refuse, SpecEnvironments } from '../check.ts';
import type { WrittenModel } from '../model.ts';
import type { PolicySpec } from '../policy.ts';
import type { WrittenReward } from '../reward.ts';
import type { SamplingSpec } from '../sampling.ts';
import type { WrittenVerification } from '../verification.ts';
import { namedIn } from '../../training/earlier-policies.ts';
import { checkEarlierPolicy } from './earlier-policy.ts';
import { checkRlStage, rlStageOf, rlStageSchema } from './rl.ts';
import type { RlStageSpec } from './rl.ts';
import { checkRewardStage, rewardStageOf, rewardStageSchema } from './reward.ts';
import type { RewardStageSpec } from './reward.ts';
import { checkSupervisedStage, supervisedStageOf, supervisedStageSchema } from './supervised.ts';
import type { SupervisedStageSpec } from './supervised.ts';

/** In order; `rl` is what a stage is that does not say. */
export const stagesSchema = z
  .array(z.discriminatedUnion('kind', [rlStageSchema, supervisedStageSchema, rewardStageSchema]))
  .nonempty()
  .max(64, 'has at most 64 stages: what each ended with is carried along')
  .describe('In order: each stage goes on with the policy of the one before, or of an earlier one (from).');

type WrittenStages = z.output<typeof stagesSchema>;

export type StageSpec = RlStageSpec | SupervisedStageSpec | RewardStageSpec;

export const stagesOf = (
  stages: WrittenStages,
  sampling: SamplingSpec,
  environments: SpecEnvironments,
): StageSpec[] =>
  stages.map((stage) => {
    switch (stage.kind) {
      case 'supervised':
        return supervisedStageOf(stage);
      case 'reward':
        return rewardStageOf(stage);
      default:
        return rlStageOf(stage, sampling, environments);
    }
  });

/** Names that every run uses for its own phases, workflows and objects. */
const RESERVED = [
  'spec',
  INITIALIZE,
  'before',
  'after',
  'report',
  'done',
  'evaluation',
  'ladder',
  'reverify',
  'sweep',
];

/** Whether a stage can begin with a policy that has never seen what to do: it imitates, or what it learns from is a success. */
const canBegin = (stage: WrittenStages[number]): boolean => {
  if (stage.kind === 'supervised') return stage.algorithm === undefined;
  if (stage.kind === 'reward') return false;
  const samples = ['on-policy', 'pipelined', 'asynchronous', 'replay'].includes(stage.collect.kind);
  return !samples || stage.algorithm.kind === 'rft';
};

export function checkStages(
  stages: WrittenStages,
  {
    model,
    sampling,
    reward,
    verification,
    agent,
    policy,
  }: {
    model: WrittenModel;
    sampling: SamplingSpec;
    reward: WrittenReward;
    verification?: WrittenVerification | undefined;
    agent?: AgentSpec | undefined;
    policy?: PolicySpec | undefined;
  },
  environments: SpecEnvironments,
  refuse: Refuse,
): void {
  if (model.from === undefined && !canBegin(stages[0]!)) {
    refuse(
      ['stages', 0, 'kind'],
      'a model from scratch cannot act yet: begin with a stage { "kind": "supervised", "name": "warm-start", … }, with stored episodes, a search or rejection sampling (collect stored or tree, or rft), or name a checkpoint in model.from',
    );
  }
  const ofTurns = (reward.rules ?? []).findIndex((rule) => rule.kind === 'process' && rule.by === 'turns');
  const isRead = stages.some((stage) => stage.kind === 'rl' && readsTurns(stage.algorithm));
  if (ofTurns >= 0 && !isRead) {
    refuse(
      ['reward', 'rules', ofTurns, 'by'],
      `no stage reads rewards of single turns: choose a method that does (${READ_TURNS.join(', ')}), or minimum, product or mean`,
    );
  }
  const context = {
    lora: model.lora !== undefined,
    turnRewards: ofTurns >= 0,
    branches: agent?.branches === 'train',
    elsewhere: policy !== undefined && policy.kind !== 'onnx',
    sampling,
    rules: reward.rules ?? [],
  };
  // Names become folders, which some file systems do not tell apart by case.
  const names = stages.map(({ name }) => name.toLowerCase());
  stages.forEach((stage, s) => {
    const at = ['stages', s];
    const name = names[s]!;
    if (names.indexOf(name) !== s) {
      refuse(
        [...at, 'name'],
        `"${stage.name}" is the name of an earlier stage; names must differ, and not by case alone`,
      );
    }
    if (RESERVED.includes(name) || name.endsWith(HELD_OUT)) {
      refuse([...at, 'name'], `"${stage.name}" is reserved for a part of every run; choose another`);
    }
    const before = stages.slice(0, s);
    checkEarlierPolicy(stage.from, before, [...at, 'from'], refuse);
    const begins = s === 0 || stage.from?.stage === INITIALIZE;
    if (model.from === undefined) {
      const { proposer, solver } = (stage.kind === 'rl' && stage.selfPlay) || {};
      const acting = [
        ['from', s > 0 && !canBegin(stage) ? stage.from : undefined],
        ['selfPlay.proposer', proposer],
        ['selfPlay.solver', solver],
      ] as const;
      for (const [field, named] of acting)
        if (named && namedIn(named).includes(INITIALIZE))
          refuse(
            [...at, ...field.split('.'), 'stage'],
            `a model from scratch cannot act yet, and "${INITIALIZE}" is the policy before any stage: name an earlier stage that has trained it, or a checkpoint in model.from`,
          );
    }
    if (stage.kind === 'supervised') checkSupervisedStage(stage, context.sampling, at, environments, refuse);
    else if (stage.kind === 'reward') checkRewardStage(stage, reward, before, at, environments, refuse);
    else
      checkRlStage(
        stage,
        verification,
        { ...context, beginsWith: begins ? model.from : undefined },
        before,
        at,
        environments,
        refuse,
      );
  });
}
