import type { SelfPlaySpec } from '../schema/stages/self-play.ts';

/** Roles of self-play that the policy of a stage plays itself; an opponent plays the other one. */
export const playedRoles = ({ proposer, solver }: Pick<SelfPlaySpec, 'proposer' | 'solver'>) => ({
  proposer: proposer === undefined,
  solver: solver === undefined,
});

/** Roles whose episodes a step learns from. */
export function trainedRoles(how: Pick<SelfPlaySpec, 'proposer' | 'solver' | 'trainProposer'>) {
  const { proposer, solver } = playedRoles(how);
  return { proposer: proposer && how.trainProposer, solver };
}
