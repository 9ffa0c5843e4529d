import type { TrainingPorts } from '../ports.ts';
import type { CheckpointRef } from '../refs.ts';
import { gather } from './collect-rollouts.ts';
import type { Gathered } from './collect-rollouts.ts';
import type { StageInput, StageState } from './stage.ts';
import { withoutTasks } from './tasks-again.ts';
import type { WaitingTask } from './tasks-again.ts';

// Steps whose episodes are collected while the learner works on steps before them. Which weights sample for a step, and
// what its tasks are drawn from, follows from its number and the stage's lag alone: step k begins when step k - 1 - lag is
// done. So a run that is killed collects the same again.

/** A step that was begun, as a stage carries it along. */
export interface BegunStep<Episodes> extends Pick<StageState, 'adjusted'> {
  /** Of the stage, from 1. */
  step: number;
  /** What samples. */
  checkpoint: CheckpointRef;
  /** Tasks that waited to be drawn again, and were: no other step draws them meanwhile. */
  again: WaitingTask[];
  /** Steps that the learner has made since: how far its weights are ahead of those that sample. */
  staleness: number;
  /** The stage has rolled back behind the weights that sample: nothing is learnt from it. */
  givenUp?: true;
  episodes: Episodes;
}

/** Steps in flight, and those that were done when the stage was carried over. */
export type InFlight = BegunStep<Promise<Gathered>>;
export type Carried = BegunStep<Gathered>;

/** How many steps the policy that samples may be behind the one that learns. */
export const lagOf = ({ collect }: StageInput['stage']): number =>
  collect.kind === 'pipelined' ? collect.lag : 0;

/** What a step's facts say of the weights that sampled for it. */
export const stalenessOf = ({ staleness, givenUp }: InFlight): { staleness: number; givenUp?: true } => ({
  staleness,
  ...(givenUp && { givenUp }),
});

/** Begins the next step of the stage, where it is not, and those that may be ahead of it. */
export function beginSteps(
  ports: TrainingPorts,
  input: StageInput,
  state: StageState,
  before: readonly InFlight[],
): InFlight[] {
  const begun = [...before];
  const last = Math.min(input.stage.maxSteps, state.step + 1 + lagOf(input.stage));
  for (let step = (begun.at(-1)?.step ?? state.step) + 1; step <= last; step++) {
    const taken = begun.flatMap(({ again }) => again);
    const from = { ...state, failures: withoutTasks(state.failures, taken) };
    const { again, gathered } = gather(ports, input, from, step);
    // What goes wrong is thrown when it is the step's turn.
    gathered.catch(() => undefined);
    const { checkpoint, adjusted } = state;
    begun.push({ step, checkpoint, adjusted, again, staleness: 0, episodes: gathered });
  }
  return begun;
}

/** Waits until their episodes are there: what samples does not go on where a stage continues as new. */
export const settle = (begun: readonly InFlight[]): Promise<Carried[]> =>
  Promise.all(begun.map(async (one) => ({ ...one, episodes: await one.episodes })));

export const takeUp = (carried: readonly Carried[]): InFlight[] =>
  carried.map((one) => ({ ...one, episodes: Promise.resolve(one.episodes) }));

/** After a step in which something was learnt. */
export const older = (begun: readonly InFlight[]): InFlight[] =>
  begun.map((one) => ({ ...one, staleness: one.staleness + 1 }));

/** After a roll-back: what the weights from before it sample teaches nothing. */
export const giveUp = (begun: readonly InFlight[]): InFlight[] =>
  begun.map((one) => ({ ...one, givenUp: true }));
