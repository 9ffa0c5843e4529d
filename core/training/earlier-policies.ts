import type { LeagueDraw, Opponent } from '../schema/stages/earlier-policy.ts';
import type { SelfPlaySpec } from '../schema/stages/self-play.ts';
import type { StageSpec } from '../schema/stages/stages.ts';

/** The stages that an opponent names: one, or those of a league. */
export const namedIn = ({ stage }: Opponent): string[] => (typeof stage === 'string' ? [stage] : stage);

/** Who plays the other role of self-play; absent where the policy plays both. */
const opponentIn = ({ proposer, solver }: Pick<SelfPlaySpec, 'proposer' | 'solver'>): Opponent | undefined =>
  proposer ?? solver;

/** How a step draws its opponent. */
export const drawOf = (how: Pick<SelfPlaySpec, 'proposer' | 'solver'>): LeagueDraw =>
  opponentIn(how)?.draw ?? 'uniform';

/** Names of the policies that play the other role of a stage of self-play, one of them in each step; of most stages none. */
export function opponentsOf(stage: StageSpec): string[] {
  const named = stage.kind === 'rl' && stage.selfPlay ? opponentIn(stage.selfPlay) : undefined;
  return named ? namedIn(named) : [];
}

/** Names of the policies of earlier stages that a stage asks for. */
export const earlierPoliciesOf = (stage: StageSpec): string[] =>
  [stage.from?.stage, ...opponentsOf(stage)].flatMap((name) => name ?? []);
