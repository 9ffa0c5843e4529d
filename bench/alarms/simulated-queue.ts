import { chooseInTime } from '../../core/training/groups-in-flight.ts';

/** A group under way, or waiting to be taken. */
interface Group {
  begunAfter: number;
  endsAt: number;
  ended: boolean;
}

export interface QueueShape {
  groupsPerStep: number;
  maxStaleness: number;
  /** Groups under way at once, at most. */
  inFlight: number;
}

/**
 * The groups of an asynchronous stage in a time of its own: how old those are that each step takes follows from how long
 * groups and learner take. Which are taken is chosen by the code of real stages.
 */
export class SimulatedQueue {
  private time = 0;
  private groups: Group[] = [];
  private step = 0;

  private readonly shape: QueueShape;
  private readonly groupTime: () => number;

  constructor(shape: QueueShape, groupTime: () => number) {
    this.shape = shape;
    this.groupTime = groupTime;
  }

  /** Ages of the groups of the next step, in learner steps, which then takes so long to learn. */
  next(learnerTime: number): number[] {
    const { groupsPerStep, maxStaleness } = this.shape;
    const step = this.step + 1;
    const room = (maxStaleness + 1) * groupsPerStep;
    for (;;) {
      this.fill(room);
      const taken = chooseInTime(this.groups, { count: groupsPerStep, step, maxStaleness });
      if (taken === null) {
        this.endNext();
        continue;
      }
      this.groups = this.groups.filter((one) => !taken.includes(one));
      this.learn(learnerTime);
      this.step = step;
      return taken.map(({ begunAfter }) => step - 1 - begunAfter);
    }
  }

  private learn(seconds: number): void {
    const until = this.time + seconds;
    const room = this.shape.maxStaleness * this.shape.groupsPerStep;
    this.fill(room);
    while (this.underWay().some(({ endsAt }) => endsAt <= until)) {
      this.endNext();
      this.fill(room);
    }
    this.time = until;
  }

  private fill(room: number): void {
    while (this.groups.length < room && this.underWay().length < this.shape.inFlight)
      this.groups.push({
        begunAfter: this.step,
        endsAt: this.time + this.groupTime(),
        ended: false,
      });
  }

  private endNext(): void {
    const next = this.underWay().toSorted((a, b) => a.endsAt - b.endsAt)[0]!;
    next.ended = true;
    this.time = next.endsAt;
  }

  private readonly underWay = (): Group[] => this.groups.filter(({ ended }) => !ended);
}
