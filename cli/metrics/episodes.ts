import type { Episode, GroupTask, RolloutGroup } from '../../core/episode/episode.ts';
import { isRewarded } from '../../core/episode/outcome.ts';
import type { Outcome } from '../../core/episode/outcome.ts';
import { succeeded } from '../../core/episode/reward.ts';
import { ruleName } from '../../core/reward/rules.ts';
import type { RewardSpec } from '../../core/spec.ts';
import type { TrainBatch } from '../../engine/learner/contract.ts';
import { loadBatch } from '../../store/batches.ts';
import { batchKey, rolloutsOfRun } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/object-store.ts';
import { loadTrajectories } from '../../store/trajectories.ts';

/** One episode in numbers. What is not known of it is null. */
export interface EpisodeRow {
  /** The stage, or the name of an evaluation. */
  stage: string;
  step: number;
  group: number;
  environment: string;
  split: string;
  level: number;
  index: number;
  retried: boolean;
  sample: number;
  /** SHA-256 of the weights that sampled. */
  weights: string;
  status: Episode['status']['kind'];
  outcome: Outcome['kind'];
  /** Why there is no reward, or what cut the episode off. */
  reason: string | null;
  boundary: string | null;
  success: boolean | null;
  reward: number | null;
  /** Mean over the sampled tokens of what the learner was given; null where the episode was not learnt from. */
  advantage: number | null;
  turns: number;
  calls: number;
  promptTokens: number;
  sampledTokens: number;
  observationTokens: number;
  /** Of both: those that another sample of its task has sampled or read, and it branched off behind them. */
  inheritedTokens: number;
  /** Of all sampled tokens when sampled, nats. */
  logprobSum: number;
  answer: string | null;
  /** By verifier or rule: what it said, and what that added to the reward. */
  scores: Record<string, number | null>;
  contributions: Record<string, number>;
}

/** What a reward is made of, by the names that its parts have in an episode: verifiers, ensembles and rules. */
export const componentsOf = ({ components, rules = [] }: RewardSpec): string[] => [
  ...new Set([...components.map(({ verifier }) => verifier), ...rules.map(ruleName)]),
];

/**
 * Every stored episode of a run, a step of a stage or an evaluation at a time, in the order of their names. Where a
 * ladder has judged a group, what it said at that step counts.
 */
export async function* episodesOf(
  store: ObjectStore,
  run: string,
  reward: RewardSpec,
): AsyncGenerator<EpisodeRow[]> {
  const above = rolloutsOfRun(run);
  for (const folder of await foldersIn(store, above)) {
    for (const inner of await foldersIn(store, folder)) {
      const [stage, number] = inner.slice(above.length, -1).split('/') as [string, string];
      const step = Number(number);
      const groups = await groupsIn(store, inner);
      const ref = await store.head(batchKey(run, stage, step));
      const advantages = ref ? new Advantages(await loadBatch(store, ref)) : null;
      yield groups.flatMap(([group, judged]) =>
        judged.episodes.map((episode): EpisodeRow => {
          const task = judged.tasks[episode.task]!;
          return {
            stage,
            step,
            group,
            weights: judged.weights,
            ...ofTask(task),
            ...ofEpisode(episode, reward),
            advantage: advantages?.next(task.promptTokens, episode) ?? null,
          };
        }),
      );
    }
  }
}

const foldersIn = async (store: ObjectStore, folder: string): Promise<string[]> =>
  (await store.listFolder(folder)).folders.toSorted();

/** The groups of a step by number, each as it counted in the step. */
async function groupsIn(store: ObjectStore, folder: string): Promise<[number, RolloutGroup][]> {
  const { keys } = await store.listFolder(folder);
  const counting = new Map<number, string>();
  for (const key of keys.toSorted()) {
    const [, number, judged] = /\/group-(\d+)(\.judged)?\.json$/.exec(key) ?? [];
    // What is left are verdicts that came late, which later steps have learnt from.
    if (number === undefined) continue;
    if (judged !== undefined || !counting.has(Number(number))) counting.set(Number(number), key);
  }
  const groups: [number, RolloutGroup][] = [];
  for (const [number, key] of [...counting].toSorted(([a], [b]) => a - b)) {
    const ref = await store.head(key);
    if (ref) groups.push([number, await loadTrajectories(store, ref)]);
  }
  return groups;
}

const ofTask = ({ ref, retried, promptTokens }: GroupTask) => ({
  environment: ref.environment,
  split: ref.split,
  level: ref.level,
  index: ref.index,
  retried: retried === true,
  promptTokens: promptTokens.length,
});

function ofEpisode(episode: Episode, reward: RewardSpec) {
  const outcome = episode.outcome!;
  const components = isRewarded(outcome) ? outcome.components : [];
  const sampledTokens = episode.mask.reduce<number>((sum, bit) => sum + bit, 0);
  return {
    sample: episode.sample,
    status: episode.status.kind,
    outcome: outcome.kind,
    reason: 'reason' in outcome ? outcome.reason : 'limit' in outcome ? outcome.limit : null,
    boundary: outcome.kind === 'failed' ? outcome.boundary : null,
    success: succeeded(reward.components, outcome),
    reward: isRewarded(outcome) ? outcome.reward : null,
    turns: episode.turns.length,
    calls: episode.turns.filter(({ action }) => action.kind === 'call').length,
    sampledTokens,
    observationTokens: episode.tokens.length - sampledTokens,
    inheritedTokens: episode.inherited?.tokens ?? 0,
    logprobSum: episode.logprobs.reduce((sum, logprob) => sum + logprob, 0),
    answer: episode.status.kind === 'answered' ? episode.status.answer : null,
    scores: Object.fromEntries(components.map(({ verifier, score }) => [verifier, score])),
    contributions: Object.fromEntries(
      components.map(({ verifier, contribution }) => [verifier, contribution]),
    ),
  };
}

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
