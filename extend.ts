// What a project imports from "gradus/extend": what a method, a rule of the reward, a dialect or an agent loop of its own is made of.

export { defineMethod, defineRewardRule } from './core/extensions/extension.ts';
export type { OwnMethod, OwnRewardRule } from './core/extensions/extension.ts';
export { defineAgentLoop } from './core/extensions/agent-loop.ts';
export type { LoopContext, LoopMessage, LoopTool, OwnAgentLoop } from './core/extensions/agent-loop.ts';
export { defineDialect } from './engine/dialect/own-dialect.ts';
export type { DialectContext, OwnDialect, Piece } from './engine/dialect/own-dialect.ts';
export type { ChatMessage, ToolDescription, WrittenTurn } from './engine/dialect/contract.ts';
export type { Action } from './core/episode/episode.ts';
export { groupStatistics, overSamples, perSample } from './core/algorithms/advantage.ts';
export type { GroupStatistics, SampleAdvantages } from './core/algorithms/advantage.ts';
export type { MethodContext, Plan } from './core/algorithms/method.ts';
export type { Objective } from './core/algorithms/objective.ts';
export type { Sample } from './core/algorithms/sample.ts';
export {
  clip,
  clippedObjective,
  entropyBonus,
  importance,
  klToReference,
  ofSamples,
  passes,
  planOf,
  refills,
  refuseImportance,
  tokenMean,
} from './core/algorithms/surrogate.ts';
export type { TaskGroup } from './core/algorithms/task-group.ts';
export type { JudgedSample, RuleVerdict } from './core/reward/rule.ts';
export { canonicalAnswer, sampledTokens } from './core/reward/rule.ts';
export { median } from './core/statistics/median.ts';
export { z } from 'zod';
