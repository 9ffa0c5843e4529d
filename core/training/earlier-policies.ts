import type { StageSpec } from '../schema/stages/stages.ts';

/** The name of the policy that plays the other role of a stage of self-play, if one does. */
export const opponentOf = (stage: StageSpec): string | undefined =>
  stage.kind === 'rl' ? (stage.selfPlay?.proposer ?? stage.selfPlay?.solver)?.stage : undefined;

/** Names of the policies of earlier stages that a stage asks for. */
export const earlierPoliciesOf = (stage: StageSpec): string[] =>
  [stage.from?.stage, opponentOf(stage)].flatMap((name) => name ?? []);
