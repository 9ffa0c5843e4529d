import { trainingSamples } from '../../core/algorithms/training-sample.ts';
import type { BatchRequest, BatchResult } from '../../core/requests/batch.ts';
import type { DemonstrationsRequest } from '../../core/requests/demonstrations.ts';
import type { TrainBatch } from '../../engine/learner/contract.ts';
import { putBatch } from '../../store/training/batches.ts';
import { loadModelFiles } from '../../store/training/checkpoints.ts';
import { batchKey } from '../../store/keys.ts';
import type { StoredObject } from '../../store/objects/object-store.ts';
import { scoresCodec } from '../../store/training/scores.ts';
import { loadTrajectories } from '../../store/rollout/trajectories.ts';
import type { CurriculumDependencies } from './dependencies.ts';
import { demonstrationSequences } from './demonstrations.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import { dialectsOf } from './dialects.ts';
import { givenDialects, givenSequences, roomIn } from './given-data.ts';
import { trainedTokens, packBatch } from './training-batch.ts';

/** The batch of a round of a supervised stage: demonstrations. */
export async function buildDemonstrations(
  { store, environments }: CurriculumDependencies,
  request: DemonstrationsRequest,
  signal: AbortSignal,
): Promise<BatchResult> {
  const start = Date.now();
  const files = await loadModelFiles(store, request.checkpoint, { signal });
  const sequences = request.given
    ? await givenSequences(
        store,
        givenDialects(files, environmentOf(environments, request.arms[0]!.environment)),
        { ...request, ...request.given, room: roomIn(files) },
        signal,
      )
    : await demonstrationSequences(environments, dialectsOf(files), request, signal);
  const key = batchKey(request.run, request.stage, request.round);
  return finish(await putBatch(store, key, packBatch(sequences, request.updates), { signal }), 0, start);
}

/** Advantages and the batch of a step. `batch` is null when there is nothing to learn from. */
export async function buildBatch(
  { store }: Pick<CurriculumDependencies, 'store'>,
  request: BatchRequest,
  signal: AbortSignal,
): Promise<BatchResult> {
  const start = Date.now();
  const groups = await Promise.all(request.groups.map((ref) => loadTrajectories(store, ref, { signal })));
  const [scores, greedy] = await Promise.all([
    request.scores && store.read(request.scores, scoresCodec, { signal }),
    Promise.all((request.greedy ?? []).map((ref) => loadTrajectories(store, ref, { signal }))),
  ]);
  const { sequences, degenerateGroups, ...more } = trainingSamples(groups, request, {
    greedy,
    ...(scores && { scores }),
    ...(request.movingMeans && { movingMeans: request.movingMeans }),
  });
  const key = batchKey(request.run, request.stage, request.step);
  const kept = await putBatch(store, key, packBatch(sequences, request.updates), { signal });
  return { ...finish(kept, degenerateGroups, start), ...more };
}

export function finish(
  { ref, value }: StoredObject<TrainBatch>,
  degenerateGroups: number,
  start: number,
): BatchResult {
  const sequences = value.offsets.length - 1;
  return {
    batch: sequences === 0 ? null : ref,
    sequences,
    tokens: value.tokens.length,
    maskedTokens: trainedTokens(value),
    degenerateGroups,
    spans: [{ part: 'data', start, end: Date.now() }],
  };
}
