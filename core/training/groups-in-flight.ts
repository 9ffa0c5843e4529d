import { asSpecified } from '../diagnosis/act.ts';
import type { TrainingPorts } from '../ports.ts';
import { randomKey } from '../random.ts';
import type { CheckpointRef } from '../refs.ts';
import type { TakenGroup, TakenGroups } from '../requests/collect.ts';
import type { AsynchronousCollect } from '../schema/collect.ts';
import { UnderWay } from '../time/under-way.ts';
import { drawGroups, sampleGroup } from './collect-rollouts.ts';
import type { DrawnGroup, Gathered } from './collect-rollouts.ts';
import type { EpisodeSource, StepEpisodes } from './episode-source.ts';
import type { StageInput, StageState } from './stage.ts';
import { withoutTasks } from './tasks-again.ts';

// Groups that are sampled without waiting for the learner: whenever one has ended another is begun, by the newest weights
// there are. A step takes those that are there. How old they may be is a guarantee, kept without throwing any away: no
// more are begun than the steps can take in time (the capacity of AReaL, Fu et al. 2025), and a step waits for old groups
// that later steps could not take any more.

/** A group that was begun and that no step has taken. */
interface BegunGroup<Episodes> extends TakenGroup {
  /** The stage has rolled back behind the weights that sample. */
  givenUp?: true;
  episodes: Episodes;
}

interface InFlight extends BegunGroup<Promise<Gathered>> {
  ended: boolean;
}

/** Weights that have sampled, or may: those after a step of the stage. */
interface Version {
  after: number;
  checkpoint: CheckpointRef;
  /** Learner steps of the stage by then, and the optimizer's updates in them. */
  learned: number;
  updates: number;
}

/** What a stage carries along of its groups. */
export interface CarriedGroups {
  groups: BegunGroup<Gathered>[];
  /** Drawn and not begun. */
  drawn: DrawnGroup[];
  /** Steps whose tasks were drawn. */
  drawnSteps: number;
  versions: Version[];
  learned: number;
  updates: number;
  /** Other groups were taken before than this execution would take: see whether there is more of it. */
  following?: true;
}

/** In place of the number of a group that was drawn and, after a roll-back, is passed over. */
const NEVER_BEGUN = -1;
const NOTHING: Gathered = { results: [], corrections: [], greedy: [], relabelled: null, stored: null };

/** The run that is followed says no more of what to do. */
export class FollowedToTheEnd extends Error {}

export class GroupsInFlight implements EpisodeSource {
  private groups: InFlight[] = [];
  private drawn: DrawnGroup[];
  private drawnSteps: number;
  private versions: Version[];
  private learned: number;
  private updates: number;
  private following: boolean;
  /** The step that is being made; null between two. */
  private now: { input: StageInput; state: StageState } | null = null;
  /** Steps that have taken their groups, and those of the latest one until it is done. */
  private taken = 0;
  private learning: readonly InFlight[] = [];
  private wake: () => void = () => undefined;

  private readonly underWay: UnderWay;
  private readonly ports: TrainingPorts;
  private readonly how: AsynchronousCollect;

  constructor(ports: TrainingPorts, how: AsynchronousCollect, carried?: CarriedGroups) {
    this.ports = ports;
    this.how = how;
    this.underWay = new UnderWay(() => ports.now());
    this.drawn = carried?.drawn ?? [];
    this.drawnSteps = carried?.drawnSteps ?? 0;
    this.versions = carried?.versions ?? [];
    this.learned = carried?.learned ?? 0;
    this.updates = carried?.updates ?? 0;
    this.following = how.follow !== undefined || carried?.following === true;
    for (const { episodes, ...one } of carried?.groups ?? []) this.track(one, Promise.resolve(episodes));
  }

  async next(input: StageInput, state: StageState): Promise<StepEpisodes> {
    this.now = { input, state };
    this.taken = state.step;
    this.versions = [
      ...this.versions.filter(({ after }) => after >= state.step - this.how.maxStaleness),
      { after: state.step, checkpoint: state.checkpoint, learned: this.learned, updates: this.updates },
    ];
    const { run } = input.spec;
    if (this.continues)
      await this.ports.keepVersion({
        run,
        stage: input.stage.name,
        after: state.step,
        checkpoint: state.checkpoint,
      });
    const { groups: all, givenUp, waited } = await this.take(input, state.step + 1);
    const groups = all.filter(wasBegun);
    this.taken = state.step + 1;
    this.learning = groups;
    this.fill();

    const versions = groups.map((one) => this.versionOf(one));
    const gathered = await Promise.all(groups.map(({ episodes }) => episodes));
    const byStaleness = Array<number>(
      Math.max(0, ...versions.map(({ learned }) => this.learned - learned)) + 1,
    ).fill(0);
    const ages = new Map(
      versions.map(({ checkpoint, learned }) => [checkpoint.weights, this.learned - learned]),
    );
    gathered.forEach(({ results }, i) => {
      const oldest = this.learned - versions[i]!.learned;
      for (const { sampledTokens, sampledBy = [] } of results) {
        byStaleness[oldest]! += sampledTokens;
        for (const { weights, tokens } of sampledBy) {
          const age = this.ageOf(weights);
          if (age === undefined) continue;
          ages.set(weights, age);
          byStaleness[oldest]! -= tokens;
          byStaleness[age]! += tokens;
        }
      }
    });
    return {
      adjusted: asSpecified(),
      again: groups.flatMap(({ again }) => again),
      gathered: {
        ...NOTHING,
        results: gathered.flatMap(({ results }) => results),
        corrections: gathered.flatMap(({ corrections }) => corrections),
        greedy: gathered.flatMap(({ greedy }) => greedy),
      },
      ...(givenUp && { givenUp }),
      // Without staleness the facts are those of a stage that waits.
      ...(this.how.maxStaleness > 0 && {
        staleness: { staleness: byStaleness.length - 1, sampledByStaleness: byStaleness },
        stepsAhead: Object.fromEntries(ages),
        updatesBehind: Math.max(0, ...versions.map(({ updates }) => this.updates - updates)),
        waitedForOldest: waited,
        underWay: (since: number) => this.underWay.since(since),
      }),
    };
  }

  done(updates: number | null): void {
    this.now = null;
    this.learning = [];
    if (updates === null) return;
    this.learned += 1;
    this.updates += updates;
  }

  /** As many steps are passed over as there are groups for; what was drawn and not begun counts among them. */
  rolledBack(): void {
    const { after } = this.versions.at(-1)!;
    for (const one of this.drawn) {
      const episodes = Promise.resolve(NOTHING);
      this.groups.push({ ...one, group: NEVER_BEGUN, begunAfter: after, ended: true, episodes });
    }
    this.drawn = [];
    for (const one of this.groups) one.givenUp = true;
  }

  checkpoints(): CheckpointRef[] {
    return this.versions.map(({ checkpoint }) => checkpoint);
  }

  async settled(): Promise<Pick<StageState, 'inFlight'>> {
    const groups = await Promise.all(
      this.groups.map(async (group) => {
        const { ended: _, episodes, ...one } = group;
        return { ...one, episodes: await episodes };
      }),
    );
    const { drawn, drawnSteps, versions, learned, updates, following } = this;
    return {
      inFlight: { groups, drawn, drawnSteps, versions, learned, updates, ...(following && { following }) },
    };
  }

  /** The groups of a step, in the order in which they were drawn. What was taken once is taken again. */
  private async take(
    input: StageInput,
    step: number,
  ): Promise<{ groups: InFlight[]; givenUp?: true; waited: number }> {
    const place = {
      run: input.spec.run,
      stage: input.stage.name,
      step,
      ...(this.how.follow !== undefined && { follow: this.how.follow }),
    };
    if (this.following) {
      const before = await this.ports.takeGroups({ ...place, wanted: null });
      if (before === null && this.how.follow !== undefined)
        throw new FollowedToTheEnd(`${this.how.follow} has taken no groups for step ${step}`);
      if (before !== null) return { ...this.takeAsBefore(input, before), waited: 0 };
      this.following = false;
    }
    this.fill();
    const { groups, waited } = await this.choose(input, step);
    const wanted = takenOf(groups);
    const kept = await this.ports.takeGroups({ ...place, wanted });
    if (!isSame(kept!, wanted)) {
      this.following = true;
      return { ...this.takeAsBefore(input, kept!), waited };
    }
    this.groups = this.groups.filter((one) => !groups.includes(one));
    return { groups, ...(wanted.givenUp && { givenUp: true }), waited };
  }

  /** Whatever else is in flight was begun by a course of things that does not count. */
  private takeAsBefore(
    input: StageInput,
    { givenUp, groups }: TakenGroups,
  ): { groups: InFlight[]; givenUp?: true } {
    const { groups: begun } = this;
    this.groups = [];
    this.drawn = [];
    if (!groups.every((one) => this.versions.some(({ after }) => after === one.begunAfter)))
      throw new FollowedToTheEnd(
        `groups of ${this.how.follow} are older than maxStaleness = ${this.how.maxStaleness}: set it to that of ${this.how.follow}`,
      );
    for (const one of groups) {
      const same = begun.find((other) => isSameGroup(one, other));
      if (same) this.groups.push(same);
      else this.begin(input, one);
      this.drawnSteps = Math.max(this.drawnSteps, one.step);
    }
    const taken = this.groups;
    this.groups = [];
    return { groups: taken, ...(givenUp && { givenUp }) };
  }

  /** Waits until the step has its groups: those that ended, the oldest first, and all that could not be taken in time. */
  private async choose(input: StageInput, step: number): Promise<{ groups: InFlight[]; waited: number }> {
    const count = workflowsOfStep(input);
    let enoughSince: number | null = null;
    for (;;) {
      const givenUp = this.groups.filter((one) => one.givenUp);
      const ended = this.groups.filter((one) => one.ended);
      const groups =
        givenUp.length > 0
          ? allEnded(givenUp.slice(0, count))
          : chooseInTime(this.groups, {
              count: Math.min(count, this.groups.length + this.drawn.length + this.undrawn(input, step)),
              step,
              maxStaleness: this.how.maxStaleness,
            });
      const now = this.ports.now();
      if (groups !== null) return { groups, waited: enoughSince === null ? 0 : (now - enoughSince) / 1000 };
      if (ended.length >= count) enoughSince ??= now;
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }

  /** Groups that may still be drawn for a step: where some of an earlier course of things were lost there are fewer. */
  private undrawn(input: StageInput, step: number): number {
    const last = Math.min(step + this.how.maxStaleness, input.stage.maxSteps);
    return Math.max(0, last - this.drawnSteps) * workflowsOfStep(input);
  }

  /** Begins groups as long as there is room for them in the steps that may take them. */
  private fill(): void {
    if (this.now === null || this.following) return;
    const { input, state } = this.now;
    const perStep = workflowsOfStep(input);
    const last = Math.min(state.step + 1 + this.how.maxStaleness, input.stage.maxSteps);
    const { inFlight = Infinity } = this.how;
    const most = Math.floor((inFlight * perStep) / input.stage.groupsPerStep);
    while (
      this.groups.length < (last - this.taken) * perStep &&
      this.groups.filter(({ ended }) => !ended).length < most
    ) {
      if (this.drawn.length === 0) {
        if (this.undrawn(input, state.step + 1) === 0 && this.groups.length > 0) return;
        this.drawnSteps += 1;
        const waiting = [...this.groups, ...this.learning].flatMap(({ again }) => again);
        const from = { ...state, failures: withoutTasks(state.failures, waiting) };
        this.drawn = drawGroups(input, from, this.drawnSteps);
      }
      const one = this.drawn.shift()!;
      this.begin(input, { ...one, begunAfter: state.step, group: numberOf(one, state.checkpoint) });
    }
  }

  private begin(input: StageInput, one: TakenGroup): void {
    const { checkpoint } = this.versionOf(one);
    // Neither alarms nor a schedule change how an asynchronous stage samples.
    const { follow } = this.how;
    const continues = this.continues && {
      after: one.begunAfter,
      ...(follow !== undefined && { follow }),
    };
    const from = { checkpoint, adjusted: asSpecified(), ...(continues && { continues }) };
    const episodes = sampleGroup(this.ports, input, from, one);
    this.underWay.during(episodes);
    this.track(one, episodes);
  }

  private track(one: Omit<BegunGroup<unknown>, 'episodes'>, episodes: Promise<Gathered>): void {
    const group: InFlight = { ...one, ended: false, episodes };
    this.groups.push(group);
    const end = (): void => {
      group.ended = true;
      this.fill();
      this.wake();
    };
    // What goes wrong is thrown when a step takes it.
    episodes.then(end, end);
  }

  /** Whether episodes go on with newer weights. Without staleness there are none before all of them have ended. */
  private get continues(): boolean {
    return this.how.onNewWeights === 'continue' && this.how.maxStaleness > 0;
  }

  /** Learner steps since weights that may sample; undefined of others, which another course of things has left. */
  private ageOf(weights: string): number | undefined {
    const version = this.versions.findLast(({ checkpoint }) => checkpoint.weights === weights);
    return version && this.learned - version.learned;
  }

  private versionOf({ begunAfter }: Pick<TakenGroup, 'begunAfter'>): Version {
    return this.versions.find(({ after }) => after === begunAfter)!;
  }
}

/** Child workflows of a step, where all have as many tasks. */
const workflowsOfStep = ({ stage }: StageInput): number =>
  Math.max(1, stage.groupsPerStep / stage.groupsPerWorkflow);

/**
 * What a group is called: it follows from its tasks and from the weights that sample, because what was sampled once is
 * stored under its name, and counts. The next number is that of its baselines or corrections.
 */
function numberOf({ step, firstTask, tasks }: DrawnGroup, { weights }: CheckpointRef): number {
  const { k0, k1 } = randomKey('group', step, firstTask, weights, JSON.stringify(tasks));
  return 2 * ((k0 >>> 0) * 2 ** 16 + ((k1 >>> 0) % 2 ** 16));
}

const wasBegun = ({ group }: Pick<TakenGroup, 'group'>): boolean => group !== NEVER_BEGUN;

const allEnded = (groups: InFlight[]): InFlight[] | null =>
  groups.every(({ ended }) => ended) ? groups : null;

/**
 * `count` of the groups that have ended, the oldest first, such that the steps after this one can take all others before
 * they are too old; null where some must be waited for. A group may be taken by the step `begunAfter + 1 + maxStaleness`
 * at the latest. Of those that may be taken by a step d at the latest, no more than `count` a step may be left.
 */
export function chooseInTime<Group extends Pick<InFlight, 'begunAfter' | 'ended'>>(
  groups: readonly Group[],
  { count, step, maxStaleness }: { count: number; step: number; maxStaleness: number },
): Group[] | null {
  const ended = groups.filter((one) => one.ended);
  const chosen = new Set<Group>();
  for (let by = step; by <= step + maxStaleness; by++) {
    const isDue = ({ begunAfter }: Group): boolean => begunAfter + 1 + maxStaleness <= by;
    const needed = groups.filter(isDue).length - (by - step) * count;
    const due = ended.filter((one) => isDue(one) && !chosen.has(one));
    const missing = needed - [...chosen].filter(isDue).length;
    if (missing > due.length) return null;
    for (const one of due.slice(0, Math.max(0, missing))) chosen.add(one);
  }
  for (const one of ended) if (chosen.size < count) chosen.add(one);
  return chosen.size < count ? null : groups.filter((one) => chosen.has(one));
}

/** What is kept of the groups that a step takes. What was never begun is none of them. */
function takenOf(groups: readonly InFlight[]): TakenGroups {
  const givenUp = groups.some((one) => one.givenUp);
  return {
    groups: groups.filter(wasBegun).map(({ step, group, firstTask, tasks, retries, again, begunAfter }) => ({
      step,
      group,
      firstTask,
      tasks,
      retries,
      again,
      begunAfter,
    })),
    ...(givenUp && { givenUp: true }),
  };
}

const isSameGroup = (a: TakenGroup, b: TakenGroup): boolean =>
  a.step === b.step && a.group === b.group && a.begunAfter === b.begunAfter;

const isSame = (a: TakenGroups, b: TakenGroups): boolean =>
  a.givenUp === b.givenUp &&
  a.groups.length === b.groups.length &&
  a.groups.every((one, i) => isSameGroup(one, b.groups[i]!));
