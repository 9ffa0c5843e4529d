import { isTrainable } from '../../core/algorithms/sample.ts';
import type { Episode, RolloutGroup } from '../../core/episode/episode.ts';
import { episodeFactsOf } from '../../core/episode/facts.ts';
import type { EpisodeFacts } from '../../core/episode/facts.ts';
import { ruleName } from '../../core/reward/rules.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import type { TrainBatch } from '../../engine/learner/contract.ts';
import { loadBatch } from '../../store/training/batches.ts';
import { inParallel } from '../../store/in-parallel.ts';
import { batchKey } from '../../store/keys.ts';
import type { CallOptions, ObjectStore } from '../../store/objects/object-store.ts';
import { findTrajectories } from '../../store/rollout/trajectories.ts';
import { unlessDamaged } from '../../store/objects/unless-damaged.ts';
import { groupsIn, inPortions, stepFolders } from './stored-groups.ts';
import type { StepFolder, CountedGroup } from './stored-groups.ts';

/** Groups that are read at a time. */
const AT_ONCE = 8;

/** Of a run without a spec, or whose spec cannot be read: what was paid stands in its episodes, and what for is not known. */
export const NO_REWARD: RewardSpec = { components: [], truncated: 'mask' };

/** One episode in numbers, where it stands, and what it taught. */
export interface EpisodeRow extends EpisodeFacts {
  /** The stage, or the name of an evaluation. */
  stage: string;
  step: number;
  group: number;
  /** Mean over the sampled tokens of what the learner was given; null where the episode was not learnt from. */
  advantage: number | null;
}

/** What a reward is made of, by the names that its parts have in an episode: verifiers, ensembles and rules. */
export const componentsOf = ({ components, rules = [] }: RewardSpec): string[] => [
  ...new Set([...components.map(({ verifier }) => verifier), ...rules.map(ruleName)]),
];

/** `damaged`: groups and batches that cannot be read are left out, and why is added to it; without it they throw. */
export type RowOptions = CallOptions & { damaged?: string[] };

/**
 * Every stored episode of a run, a step of a stage or an evaluation at a time, in the order of their names. Where a
 * ladder has judged a group, what it said at that step counts.
 */
export async function* episodesOf(
  store: ObjectStore,
  run: string,
  reward: RewardSpec,
  options: RowOptions = {},
): AsyncGenerator<EpisodeRow[]> {
  for (const step of await stepFolders(store, run)) {
    yield await rowsOfStep(store, run, step, reward, options);
  }
}

/**
 * Of all groups of a step: what a batch gave is told by the order of their episodes. Of `some` groups alone it is not looked
 * for, and every advantage is null.
 */
export async function rowsOfStep(
  store: ObjectStore,
  run: string,
  { stage, step, folder }: StepFolder,
  reward: RewardSpec,
  { some, damaged, ...options }: RowOptions & { some?: readonly CountedGroup[] } = {},
): Promise<EpisodeRow[]> {
  const ref = some ? undefined : await store.head(batchKey(run, stage, step), options);
  const batch = ref ? await unlessDamaged(damaged, () => loadBatch(store, ref, options)) : null;
  const advantages = batch && new Advantages(batch);
  const rows: EpisodeRow[] = [];
  for (const portion of inPortions(some ?? (await groupsIn(store, folder, options)))) {
    const read = await inParallel(
      portion,
      ({ key }) => unlessDamaged(damaged, () => findTrajectories(store, key, options)),
      AT_ONCE,
    );
    for (const [i, { group }] of portion.entries()) {
      const judged = read[i];
      if (!judged) continue;
      for (const row of rowsOfGroup(judged, reward, { stage, step, group, advantages })) rows.push(row);
    }
  }
  return rows;
}

const rowsOfGroup = (
  judged: RolloutGroup,
  reward: RewardSpec,
  { advantages, ...place }: Pick<EpisodeRow, 'stage' | 'step' | 'group'> & { advantages: Advantages | null },
): EpisodeRow[] =>
  episodeFactsOf(judged, reward).map((facts) => {
    const episode = judged.episodes[facts.episode]!;
    const { promptTokens, learntBehind = promptTokens } = judged.tasks[episode.task]!;
    // Of two that are alike it may be the other one that was learnt from.
    const advantage = isTrainable(episode, reward) ? advantages?.next(learntBehind, episode) : undefined;
    return { ...place, ...facts, advantage: advantage ?? null };
  });

/**
 * What a batch gave its sequences as advantage. A batch does not say which episodes it was made of, but it has their
 * tokens, and those that are alike stand in the order of the episodes.
 */
class Advantages {
  private readonly of = new Map<string, number[]>();

  constructor({ tokens, offsets, mask, streams, sequences }: TrainBatch) {
    const { advantages } = streams;
    // A preference has no advantage, and may speak of one turn of many.
    if (!advantages || sequences.pair) return;
    for (let i = 0; i + 1 < offsets.length; i++) {
      const [start, end] = [offsets[i]!, offsets[i + 1]!];
      let sum = 0;
      let sampled = 0;
      for (let at = start; at < end; at++) {
        sum += mask[at]! * advantages[at]!;
        sampled += mask[at]!;
      }
      const key = keyOf(tokens.subarray(start, end));
      const alike = this.of.get(key) ?? [];
      this.of.set(key, alike);
      alike.push(sampled === 0 ? 0 : sum / sampled);
    }
  }

  /** Of the next episode of these tokens; null where it was not learnt from. */
  next(promptTokens: readonly number[], { tokens }: Episode): number | null {
    return this.of.get(keyOf(Int32Array.from([...promptTokens, ...tokens])))?.shift() ?? null;
  }
}

const keyOf = (tokens: Int32Array): string =>
  Buffer.from(tokens.buffer, tokens.byteOffset, tokens.byteLength).toString('latin1');
