import type { TrainingPorts } from '../ports.ts';
import type { CheckpointRef } from '../refs.ts';
import { gather } from './collect-rollouts.ts';
import type { Gathered } from './collect-rollouts.ts';
import type { EpisodeSource, StepEpisodes } from './episode-source.ts';
import { UnderWay } from '../time/under-way.ts';
import type { StageInput, StageState } from './stage.ts';
import { withoutTasks } from './tasks-again.ts';
import type { WaitingTask } from './tasks-again.ts';

// Steps whose episodes are collected while the learner works on steps before them. Which weights sample for a step, and
// what its tasks are drawn from, follows from its number and the stage's lag alone: step k begins when step k - 1 - lag is
// done. So a run that is killed collects the same again.

/** A step that was begun, as a stage carries it along. */
interface BegunStep<Episodes> extends Pick<StageState, 'adjusted'> {
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

export type CarriedStep = BegunStep<Gathered>;

/** How many steps the policy that samples may be behind the one that learns. */
const lagOf = ({ collect }: StageInput['stage']): number => (collect.kind === 'pipelined' ? collect.lag : 0);

export class StepsBegun implements EpisodeSource {
  private begun: BegunStep<Promise<Gathered>>[];

  private readonly underWay: UnderWay;
  private readonly ports: TrainingPorts;

  constructor(ports: TrainingPorts, carried: readonly CarriedStep[] = []) {
    this.ports = ports;
    this.underWay = new UnderWay(() => ports.now());
    this.begun = carried.map((one) => ({ ...one, episodes: Promise.resolve(one.episodes) }));
  }

  async next(input: StageInput, state: StageState): Promise<StepEpisodes> {
    this.begin(input, state);
    const { checkpoint, adjusted, again, staleness, givenUp, episodes } = this.begun.shift()!;
    return {
      adjusted,
      again,
      gathered: await episodes,
      ...(givenUp && { givenUp }),
      ...(lagOf(input.stage) > 0 && {
        staleness: { staleness },
        stepsAhead: { [checkpoint.weights]: staleness },
        underWay: (since: number) => this.underWay.since(since),
      }),
    };
  }

  /** Begins the next step of the stage, where it is not, and those that may be ahead of it. */
  private begin(input: StageInput, state: StageState): void {
    const last = Math.min(input.stage.maxSteps, state.step + 1 + lagOf(input.stage));
    for (let step = (this.begun.at(-1)?.step ?? state.step) + 1; step <= last; step++) {
      const taken = this.begun.flatMap(({ again }) => again);
      const from = { ...state, failures: withoutTasks(state.failures, taken) };
      const { again, gathered } = gather(this.ports, input, from, step);
      // What goes wrong is thrown when it is the step's turn.
      gathered.catch(() => undefined);
      this.underWay.during(gathered);
      const { checkpoint, adjusted } = state;
      this.begun.push({ step, checkpoint, adjusted, again, staleness: 0, episodes: gathered });
    }
  }

  done(updates: number | null): void {
    if (updates === null) return;
    this.begun = this.begun.map((one) => ({ ...one, staleness: one.staleness + 1 }));
  }

  rolledBack(): void {
    this.begun = this.begun.map((one) => ({ ...one, givenUp: true }));
  }

  checkpoints(): CheckpointRef[] {
    return this.begun.map(({ checkpoint }) => checkpoint);
  }

  async settled(): Promise<Pick<StageState, 'begun'>> {
    if (this.begun.length === 0) return {};
    return {
      begun: await Promise.all(this.begun.map(async (one) => ({ ...one, episodes: await one.episodes }))),
    };
  }
}
