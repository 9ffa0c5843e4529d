import { z } from 'zod';
import { GradusError } from '../../core/errors.ts';
import { groupBy } from '../../core/group-by.ts';
import { canonicalJson } from '../../core/json/canonical-json.ts';
import type { Episode, GroupTask, RolloutGroup } from '../../core/episode/episode.ts';
import { isRewarded } from '../../core/episode/outcome.ts';
import { RandomStream } from '../../core/random.ts';
import type { BatchResult } from '../../core/requests/batch.ts';
import type {
  RewardBatchRequest,
  RewardExamplesRequest,
  RewardExamplesResult,
} from '../../core/requests/reward-model.ts';
import { labelOf, readEpisode } from '../../core/reward/reward-model.ts';
import type { ReadEpisode } from '../../core/reward/reward-model.ts';
import { pairsInwards } from '../../core/algorithms/pairs.ts';
import type { TrainingSample } from '../../core/algorithms/training-sample.ts';
import { taskRefOf } from '../../core/training/tasks-again.ts';
import { modelConfigOf } from '../../engine/hf-model-config.ts';
import { jsonCodec } from '../../store/codec.ts';
import { batchKey, rewardExamplesKey } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { lastJudged, loadTrajectories } from '../../store/rollout/trajectories.ts';
import { putBatch } from '../../store/training/batches.ts';
import { jsonOf, loadModelFiles } from '../../store/training/checkpoints.ts';
import type { ModelFiles } from '../../store/training/checkpoints.ts';
import { finish } from './build-batch.ts';
import { storedSource } from './stored-episodes.ts';
import { packBatch } from './training-batch.ts';

/** A stored episode as a reward model learns from it. */
export interface RewardExample extends ReadEpisode {
  /** Its task: samples of one task have one number. */
  task: number;
  /** In [0, 1]: the score of the verifier that decides. */
  label: number;
  success: boolean;
  /** Of each turn, where a verifier that judges steps was asked for. */
  steps?: number[];
}

export interface RewardExamples {
  train: RewardExample[];
  /** Of other tasks. */
  heldOut: RewardExample[];
}

const example = z.looseObject({
  tokens: z.array(z.int()),
  ends: z.array(z.int()),
  task: z.int(),
  label: z.number(),
  success: z.boolean(),
  steps: z.array(z.number()).optional(),
});
export const rewardExamples = jsonCodec<RewardExamples>(
  'what a reward stage learns from',
  z.looseObject({ train: z.array(example), heldOut: z.array(example) }),
);

/**
 * The episodes of a stage that a verdict has decided, by whole tasks: some tasks, drawn by the seed, are held out, and the
 * others are learnt from. Written once, at the stage's first step.
 * Throws GradusError('store', 'no-rewards') where one of the two would be empty, or all that is learnt from has the same label.
 */
export async function collectRewardExamples(
  store: ObjectStore,
  request: RewardExamplesRequest,
  signal: AbortSignal,
): Promise<RewardExamplesResult> {
  const start = Date.now();
  const { run, stage } = request;
  const key = rewardExamplesKey(run, stage);
  const known = await store.find(key, rewardExamples, { signal });
  const kept = await store.putIfAbsent(
    key,
    rewardExamples,
    known ?? (await collected(store, request, signal)),
    {
      signal,
    },
  );
  const { train, heldOut } = kept.value;
  return {
    examples: kept.ref,
    train: train.length,
    heldOut: heldOut.length,
    spans: [{ part: 'data', start, end: Date.now() }],
  };
}

async function collected(
  store: ObjectStore,
  request: RewardExamplesRequest,
  signal: AbortSignal,
): Promise<RewardExamples> {
  const { run, seed, stage, from, arms, maxEpisodes, heldOut: part, checkpoint } = request;
  const files = await loadModelFiles(store, checkpoint, { signal });
  const positions = positionsOf(files);
  const source = await storedSource(store, { run, from, arms, checkpoint }, signal);
  // What is learnt of a ladder is its last word, and not what the fast tier had said.
  const judged = await lastJudged(store, from.run, from.stage, { signal });
  const places = source.flatMap(({ tasks }, group) => tasks.map((task) => ({ group, task })));
  const order = new RandomStream(seed, 'reward', stage).shuffle(places);
  const found = new SameTasks();
  let count = 0;
  for (const { group, task } of order) {
    if (count >= maxEpisodes) break;
    const { ref, rounds = [] } = source[group]!;
    const groups = await Promise.all(
      [ref, ...rounds].map(async (one) => {
        const key = judged.get(one.key);
        return loadTrajectories(store, key ? (await store.head(key, { signal }))! : one, { signal });
      }),
    );
    const examples = groups.flatMap((one) => examplesOf(one, task, positions, request));
    if (examples.length === 0) continue;
    // In a session it is not the prompt alone that says what the task is.
    const session = groups.some(({ episodes }) => episodes.some((one) => one.task === task && one.session));
    const { ref: of, promptTokens } = groups[0]!.tasks[task]!;
    found.add({ ref: of, promptTokens: session ? [] : promptTokens }, examples);
    count += examples.length;
  }
  // In an order of their own: what was drawn often comes first in that of its places.
  const tasks = new RandomStream(seed, 'reward', stage, 'held-out')
    .shuffle(found.all())
    .map((examples, number) => examples.map((one): RewardExample => ({ ...one, task: number })));
  const tasksHeldOut = Math.max(1, Math.round(tasks.length * part));
  const [heldOut, train] = [tasks.slice(0, tasksHeldOut).flat(), tasks.slice(tasksHeldOut).flat()];
  const labels = train.flatMap(({ label, steps }) => steps ?? [label]);
  if (new Set(labels).size < 2 || heldOut.length === 0)
    throw new GradusError(
      'store',
      'no-rewards',
      `${stage} has ${train.length} judged episodes to learn from and ${heldOut.length} held out, of ${from.stage} of ${from.run}: it needs some whose scores differ, of several tasks. Name other steps or tasks`,
    );
  return { train, heldOut };
}

type FoundExample = Omit<RewardExample, 'task'>;

/** Examples by their tasks. One that was drawn again is the same task, and so is one that asks the same at other coordinates. */
class SameTasks {
  private readonly byName = new Map<string, { examples: FoundExample[]; names: string[] }>();

  add({ ref, promptTokens }: Pick<GroupTask, 'ref' | 'promptTokens'>, examples: FoundExample[]): void {
    const { source } = ref;
    const names = [
      canonicalJson({ ...taskRefOf(ref), ...(source && { source: source.sha256 }) }),
      ...(promptTokens.length > 0 ? [promptTokens.join()] : []),
    ];
    const known = new Set(names.flatMap((name) => this.byName.get(name) ?? []));
    const whole = {
      examples: [...[...known].flatMap((one) => one.examples), ...examples],
      names: [...new Set([...[...known].flatMap((one) => one.names), ...names])],
    };
    for (const name of whole.names) this.byName.set(name, whole);
  }

  all(): FoundExample[][] {
    return [...new Set(this.byName.values())].map(({ examples }) => examples);
  }
}

function examplesOf(
  { tasks, episodes }: RolloutGroup,
  task: number,
  positions: number,
  { reward, stepsOf }: RewardExamplesRequest,
): FoundExample[] {
  const { promptTokens } = tasks[task]!;
  return episodes.flatMap((episode) => {
    // What branches is no single sequence, which is all that a model reads.
    if (episode.task !== task || episode.branches) return [];
    const labelled = labelOf(reward, episode);
    const steps = stepsOf === undefined ? undefined : stepsSaid(episode, stepsOf);
    if (labelled === null || steps === null) return [];
    return [
      {
        ...readEpisode(promptTokens, episode, positions),
        ...labelled,
        ...(steps && { steps }),
      },
    ];
  });
}

/** null where the verifier has judged no steps, or not each turn. */
function stepsSaid({ outcome, turns }: Episode, verifier: string): number[] | null {
  if (!outcome || !isRewarded(outcome)) return null;
  const said = outcome.components.find((component) => component.verifier === verifier)?.steps;
  return said && said.length > 0 && said.length === turns.length ? said : null;
}

export const positionsOf = (files: ModelFiles): number =>
  modelConfigOf(jsonOf(files, 'config.json'), jsonOf(files, 'tokenizer.json')).maxPositions;

/**
 * The batch of an epoch of one model. Throws GradusError('store', 'no-rewards') where no two samples of a task differ that are
 * to be paired.
 */
export async function buildRewardBatch(
  { store }: { store: ObjectStore },
  request: RewardBatchRequest,
  signal: AbortSignal,
): Promise<BatchResult> {
  const start = Date.now();
  const { run, stage, step, updates } = request;
  const { train } = await store.read(request.examples, rewardExamples, { signal });
  const sequences = labelledSequences(train, request);
  if (sequences.length === 0)
    throw new GradusError(
      'store',
      'no-rewards',
      `${stage} finds no task of which two samples have different scores: name other steps or tasks, or learn from outcomes`,
    );
  const batch = packBatch(sequences, updates);
  return finish(await putBatch(store, batchKey(run, stage, step), batch, { signal }), 0, start);
}

/** What a model is shown: one of an ensemble draws its tasks with replacement (Breiman 1996), the same in each epoch. */
export function labelledSequences(
  train: readonly RewardExample[],
  {
    seed,
    stage,
    model,
    models,
    labels,
    pairsPerTask,
  }: Pick<RewardBatchRequest, 'seed' | 'stage' | 'model' | 'models' | 'labels' | 'pairsPerTask'>,
): TrainingSample[] {
  const all = [...groupBy(train, ({ task }) => task).values()];
  const tasks = labels === 'pairs' ? all.filter((samples) => pairsOf([samples], 1).length > 0) : all;
  const stream = new RandomStream(seed, 'reward', stage, 'model', model);
  const drawn = models === 1 ? tasks : tasks.map(() => stream.pick(tasks));
  if (labels === 'pairs') return pairsOf(drawn, pairsPerTask);
  return drawn.flat().map(({ steps, ...one }) => labelledTurns(one, labels === 'steps' ? steps : undefined));
}

/** At the end of every turn: the outcome, as a verifier of tokens is taught (Cobbe et al. 2021, section 4.2), or its own. */
function labelledTurns(
  { tokens, ends, label }: RewardExample,
  steps: readonly number[] | undefined,
): TrainingSample {
  const mask = tokens.map(() => 0);
  const returns = tokens.map(() => 0);
  ends.forEach((end, turn) => {
    mask[end] = 1;
    returns[end] = steps?.[turn] ?? label;
  });
  return { tokens, mask, streams: { returns } };
}

/** Samples of a task whose scores differ, the best with the worst and so inwards, at their ends. */
function pairsOf(tasks: readonly RewardExample[][], most: number): TrainingSample[] {
  let number = 0;
  return tasks.flatMap((samples) => {
    const worth = samples.map((example) => ({ example, worth: example.label }));
    return pairsInwards(worth, 0)
      .slice(0, most)
      .flatMap(({ better, worse }) => {
        const pair = number++;
        return [atEnd(better.example, pair, 1), atEnd(worse.example, pair, -1)];
      });
  });
}

function atEnd({ tokens, ends, label: score }: RewardExample, pair: number, label: 1 | -1): TrainingSample {
  const at = ends.at(-1)!;
  const of = (value: number): number[] => tokens.map((_, place) => (place === at ? value : 0));
  return { tokens, mask: of(1), streams: { returns: of(score) }, pair, label };
}
