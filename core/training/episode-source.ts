import type { TrainingPorts } from '../ports.ts';
import type { BlobRef, CheckpointRef } from '../refs.ts';
import type { MovingTask } from '../requests/collect.ts';
import type { Span } from '../requests/span.ts';
import type { Gathered } from './collect-rollouts.ts';
import { GroupsInFlight } from './groups-in-flight.ts';
import { ReplayBuffer } from './replay-buffer.ts';
import type { StageInput, StageState } from './stage.ts';
import type { ReplayFacts, Staleness } from './step-facts.ts';
import { StepsBegun } from './steps-begun.ts';
import type { WaitingTask } from './tasks-again.ts';

/** What a step learns from, as it was collected. */
export interface StepEpisodes extends Pick<StageState, 'adjusted'> {
  /** Tasks that waited to be drawn again, and were. */
  again: WaitingTask[];
  gathered: Gathered;
  /** Groups of earlier steps that are trained with them; absent where nothing is replayed. */
  replayed?: { groups: BlobRef[]; facts: ReplayFacts };
  /** What was done to choose them; absent where nothing was. */
  spans?: Span[];
  /** The stage has rolled back behind the weights that sampled: nothing is learnt from these episodes. */
  givenUp?: true;
  /** How old the weights are that sampled; absent where nothing is sampled ahead. */
  staleness?: Staleness;
  /** By how many learner steps the weights that learn are ahead of those that sampled, by their SHA-256; absent as `staleness` is. */
  stepsAhead?: Record<string, number>;
  /** Updates of the optimizer that have been made since the oldest of these weights; absent where nobody counts. */
  updatesBehind?: number;
  /** Seconds in which enough episodes were there, but older ones had to come first; absent where nobody waits so. */
  waitedForOldest?: number;
  /** When groups were under way since a moment, epoch milliseconds; absent where nothing is sampled ahead. */
  underWay?: (since: number) => Span[];
}

/** Where the steps of a stage get their episodes from, and what is collected before its turn. */
export interface EpisodeSource {
  /** The episodes of the step after `state`. Begins those of later steps that may be begun. */
  next(input: StageInput, state: StageState): Promise<StepEpisodes>;
  /** The step has learned from its own groups: which of their tasks moved the policy. Absent where nobody wants to know. */
  keep?(fresh: readonly BlobRef[], moving: readonly MovingTask[]): void;
  /** The latest step is done, and nothing is begun until the next. `updates` of the optimizer; null: it learned nothing. */
  done(updates: number | null): void;
  /** The weights are earlier ones again: what those in between sample teaches nothing. */
  rolledBack(): void;
  /** What samples, or is needed to sample again. */
  checkpoints(): CheckpointRef[];
  /** Waits for all that is being collected: what samples does not go on where a stage continues as new. */
  settled(): Promise<Pick<StageState, 'begun' | 'inFlight' | 'replay'>>;
}

export function episodeSource(
  ports: TrainingPorts,
  { stage }: StageInput,
  { begun, inFlight, replay }: Pick<StageState, 'begun' | 'inFlight' | 'replay'>,
): EpisodeSource {
  if (stage.collect.kind === 'replay') return new ReplayBuffer(ports, stage.collect, replay);
  return stage.collect.kind === 'asynchronous'
    ? new GroupsInFlight(ports, stage.collect, inFlight)
    : new StepsBegun(ports, begun);
}
