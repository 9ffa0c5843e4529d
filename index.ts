// What a project imports from "gradus": the contract of environments, generated tasks, ready verifiers, and the spec.

export * from './environments/contract/environment.ts';
export * from './environments/contract/session.ts';
export { dealTasks, drawTask, randomOf, splitOfProblem } from './environments/contract/generated-tasks.ts';
export type { Dealt, Shares } from './environments/contract/generated-tasks.ts';
export { RandomStream } from './core/random.ts';
export { callByCall } from './core/episode/call-by-call.ts';
export { environmentReward } from './environments/verifiers/environment-reward.ts';
export { exactMatch } from './environments/verifiers/exact-match.ts';
export { executable } from './environments/verifiers/executable.ts';
export { formatVerifier } from './environments/verifiers/format.ts';
export { judge } from './environments/verifiers/judge/judge.ts';
export { boxedMath } from './environments/verifiers/math/boxed-math.ts';
export { callsThenAnswer, subGoals } from './environments/verifiers/sub-goals.ts';
export { toolMatch } from './environments/verifiers/tool-match.ts';
export { toolShaping } from './environments/verifiers/tool-shaping.ts';
export { curriculumSchema } from './core/schema/curriculum.ts';
export type { WrittenSpec } from './core/schema/curriculum.ts';
export { GradusError } from './core/errors.ts';
export type { Json } from './core/json/json.ts';
export type { Split, TaskRef } from './core/refs.ts';
export { z } from 'zod';
