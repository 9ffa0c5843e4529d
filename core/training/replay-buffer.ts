import type { TrainingPorts } from '../ports.ts';
import type { BlobRef, CheckpointRef } from '../refs.ts';
import type { MovingTask, ReplayedTask } from '../requests/collect.ts';
import type { Span } from '../requests/span.ts';
import type { ReplayCollect } from '../schema/collect.ts';
import { gather } from './collect-rollouts.ts';
import type { EpisodeSource, StepEpisodes } from './episode-source.ts';
import { samplingAt } from './exploration.ts';
import type { StageInput, StageState } from './stage.ts';
import type { ReplayFacts, RolloutFacts } from './step-facts.ts';

// A part of each step is groups of earlier steps (experience replay, Lin 1992); the rest is sampled by the weights that
// are trained. What is replayed follows from the spec alone: the order of groups is theirs by age or by advantage, and
// weights decide which of them are too far away. So a run that is killed replays the same.

/** A group of an earlier step that may be trained once more. A group is the samples of one task here, as in GRPO. */
export interface BufferedGroup extends ReplayedTask {
  /** Mean |advantage| of its sampled tokens in the step that sampled it. */
  advantage: number;
  /** How many these are; absent where an older version has sampled them. */
  tokens?: number;
  /** Learner steps of the stage when it was sampled, and the optimizer's updates in them. */
  learned: number;
  updates: number;
}

/** What a stage carries along of its replay buffer. An object has several groups, and is named once. */
export interface CarriedReplay {
  /** Oldest first; `of` is the place of the object. */
  groups: (Omit<BufferedGroup, 'ref'> & { of: number })[];
  objects: BlobRef[];
  learned: number;
  updates: number;
  /** What sampled by each number of learner steps, SHA-256; absent in older versions, and after none. */
  sampledBy?: Record<number, string>;
}

/** 0.29 · 100 is a hair below 29 in doubles. */
const ROUNDING = 1e-9;

export class ReplayBuffer implements EpisodeSource {
  private groups: BufferedGroup[];
  /** As it is where the newest step comes to no training: what that would have replayed is in it. */
  private unreplayed: BufferedGroup[] = [];
  private learned: number;
  private updates: number;
  private sampledBy: Record<number, string>;

  private readonly ports: TrainingPorts;
  private readonly how: ReplayCollect;

  constructor(ports: TrainingPorts, how: ReplayCollect, carried?: CarriedReplay) {
    this.ports = ports;
    this.how = how;
    this.groups = (carried?.groups ?? []).map(({ of, ...one }) => ({ ...one, ref: carried!.objects[of]! }));
    this.learned = carried?.learned ?? 0;
    this.updates = carried?.updates ?? 0;
    this.sampledBy = carried?.sampledBy ?? {};
  }

  async next(input: StageInput, state: StageState): Promise<StepEpisodes> {
    const step = state.step + 1;
    const young = this.groups.filter((one) => this.ageOf(one) <= this.how.maxStaleness);
    const tooOld = this.groups.length - young.length;
    const chosen = chooseReplayed(
      young,
      Math.floor(this.how.part * input.stage.groupsPerStep + ROUNDING),
      this.how.priority,
    );
    this.groups = young.filter((one) => !chosen.includes(one));
    const { kept, spans } =
      chosen.length === 0 ? { kept: [], spans: [] } : await this.replay(input, state, step, chosen);
    const replayed = kept.map(({ group }) => group);
    this.unreplayed = young.filter((one) => !chosen.includes(one) || replayed.includes(one));
    const fresh = input.stage.groupsPerStep - kept.length;
    const { again, gathered } = gather(this.ports, input, state, step, fresh);
    const byStaleness = Array<number>(Math.max(0, ...kept.map(({ group }) => this.ageOf(group))) + 1).fill(0);
    const tokensByStaleness = byStaleness.map(() => 0);
    for (const { group } of kept) {
      byStaleness[this.ageOf(group)]! += 1;
      tokensByStaleness[this.ageOf(group)]! += group.tokens ?? 0;
    }
    const stepsAhead = Object.fromEntries(
      kept.flatMap(({ group }) => {
        const weights = this.sampledBy[group.learned];
        return weights === undefined ? [] : [[weights, this.ageOf(group)]];
      }),
    );
    this.sampledBy[this.learned] = state.checkpoint.weights;
    return {
      adjusted: state.adjusted,
      again,
      gathered: await gathered,
      ...(spans.length > 0 && { spans }),
      // Of nothing that is replayed the facts are those of a stage that has no buffer.
      ...(this.how.part > 0 && {
        replayed: {
          groups: kept.map(({ copy }) => copy),
          facts: {
            groups: kept.length,
            byStaleness,
            ...(replayed.every(({ tokens }) => tokens !== undefined) && { tokensByStaleness }),
            tooOld,
            tooFar: chosen.length - kept.length,
            buffered: this.groups.length,
          },
        },
        staleness: { staleness: byStaleness.length - 1 },
        stepsAhead,
        updatesBehind: Math.max(0, ...kept.map(({ group }) => this.updates - group.updates)),
      }),
    };
  }

  /** Those of the chosen groups that the weights are near enough to, each with its copy. What was kept once counts. */
  private async replay(
    { spec, stage }: StageInput,
    { checkpoint, adjusted }: Pick<StageState, 'checkpoint' | 'adjusted'>,
    step: number,
    chosen: readonly BufferedGroup[],
  ): Promise<{ kept: { group: BufferedGroup; copy: BlobRef }[]; spans: Span[] }> {
    const { run, reward } = spec;
    const { minEffectiveSamples, successes } = this.how;
    const place = { run, stage: stage.name, step };
    const copies = await this.ports.replay({
      ...place,
      groups: chosen.map(({ ref, task }) => ({ ref, task })),
    });
    const { temperature, topK } = samplingAt(stage, spec.sampling, step, adjusted);
    const scored =
      minEffectiveSamples === 0 && !successes
        ? null
        : await this.ports.score({
            run,
            // Beside what credit reads of a step, and under no name that a stage can have.
            stage: `${stage.name}.replayed`,
            step,
            groups: copies,
            reward,
            scores: ['policy'],
            from: { temperature, topK },
            policy: checkpoint,
            reference: null,
            compute: spec.learner,
          });
    const kept = await this.ports.keepReplayed({
      ...place,
      groups: copies,
      ...(scored && { scores: scored.scores }),
      minEffectiveSamples,
      ...(successes && { successes }),
      reward,
    });
    return {
      kept: kept.map((at) => ({ group: chosen[at]!, copy: copies[at]! })),
      spans: scored?.spans ?? [],
    };
  }

  /** What the step has sampled itself and could learn from may be replayed. */
  keep(fresh: readonly BlobRef[], moving: readonly MovingTask[]): void {
    if (this.how.part === 0) return;
    const { learned, updates } = this;
    for (const { group, ...one } of moving) {
      const ref = fresh[group];
      if (ref !== undefined) this.groups.push({ ref, ...one, learned, updates });
    }
  }

  done(updates: number | null): void {
    if (updates === null) {
      this.groups = this.unreplayed;
      return;
    }
    this.learned += 1;
    this.updates += updates;
  }

  /** Weights that are gone have sampled these, or weights that come again have learned from them. */
  rolledBack(): void {
    this.groups = [];
  }

  /** Nothing samples with weights of before. */
  checkpoints(): CheckpointRef[] {
    return [];
  }

  async settled(): Promise<Pick<StageState, 'replay'>> {
    if (this.how.part === 0) return {};
    const objects = [...new Map(this.groups.map(({ ref }) => [ref.key, ref])).values()];
    const placeOf = new Map(objects.map(({ key }, at) => [key, at]));
    const groups = this.groups.map(({ ref, ...one }) => ({ ...one, of: placeOf.get(ref.key)! }));
    const { learned, updates } = this;
    const sampledBy = Object.fromEntries(
      this.groups.flatMap((one) => {
        const weights = this.sampledBy[one.learned];
        return weights === undefined ? [] : [[one.learned, weights]];
      }),
    );
    return { replay: { groups, objects, learned, updates, sampledBy } };
  }

  private ageOf({ learned }: BufferedGroup): number {
    return this.learned - learned;
  }
}

/** The facts of a step that came to no training: its groups are in the buffer again, and what is left of it is fresh. */
export const notReplayed = (
  facts: ReplayFacts,
): Pick<RolloutFacts, 'replayed' | 'staleness' | 'staleUpdates'> => ({
  replayed: {
    ...facts,
    groups: 0,
    byStaleness: [0],
    tokensByStaleness: [0],
    buffered: facts.buffered + facts.groups,
  },
  staleness: 0,
  staleUpdates: 0,
});

/**
 * `count` of the groups, or all of fewer: the oldest first, or those with the largest mean |advantage|. Of equal ones the
 * older, and then the one that was drawn before. `groups` are in the order in which they were sampled.
 */
export function chooseReplayed<Group extends Pick<BufferedGroup, 'advantage'>>(
  groups: readonly Group[],
  count: number,
  priority: ReplayCollect['priority'],
): Group[] {
  const first = priority === 'oldest' ? groups : groups.toSorted((a, b) => b.advantage - a.advantage);
  return first.slice(0, count);
}
