import type { Episode } from '../../core/episode/episode.ts';
import { GradusError } from '../../core/errors.ts';
import { roundedTo } from '../../core/schema/policy.ts';
import { backendName } from '../../engine/decoder/load-backend.ts';
import type { LocalPolicy, Policy } from '../../engine/policy.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { PolicyPool } from '../rollout/policy-pool.ts';
import { forkEpisode } from './fork-episode.ts';
import type { Fork, Forked } from './fork-episode.ts';
import { replayEpisode } from './replay-episode.ts';
import type { Replayed } from './replay-episode.ts';
import { suggestion } from '../../core/did-you-mean.ts';
import { checkpointThatSampled, storedEpisode } from './stored-episode.ts';
import type { EpisodePlace } from './stored-episode.ts';

export interface ReplayRequest {
  place: EpisodePlace;
  /** How many of the likeliest tokens are told at each that was sampled. */
  alternatives: number;
  /** null: the whole episode is sampled again as it was. */
  fork: Fork | null;
}

export interface ReplayAnswer {
  place: EpisodePlace;
  /** What sampled the episode, or its first turn where they are several, or the one that is forked; and samples it again. */
  checkpoint: { key: string; step: number; weights: string };
  /** How the stored episode ended, and what it was judged to be. */
  stored: Pick<Episode, 'status' | 'outcome'>;
  /** Which decoder samples here. */
  decoder: string;
  replay: Replayed | null;
  fork: Forked | null;
}

export interface ReplayDependencies {
  store: ObjectStore;
  environments: Environments;
  createDecoder: () => LocalPolicy;
  signal: AbortSignal;
  /** Told how many tokens are sampled; `total` is null where nobody knows. */
  onProgress?: (tokens: number, total: number | null) => void;
}

/** Replays or forks one stored episode with its own weights. Throws what the parts of it throw. */
export async function replayStored(
  { place, alternatives, fork }: ReplayRequest,
  { store, environments, createDecoder, signal, onProgress }: ReplayDependencies,
): Promise<ReplayAnswer> {
  const stored = await storedEpisode(store, place, { signal });
  const { ref, tools: own } = stored.task;
  const environment = environments.get(ref.environment);
  if (fork && !environment) {
    const names = [...environments.keys()];
    throw new GradusError(
      'environment',
      'unknown',
      `${ref.environment}, which a fork goes on in, is not known here${suggestion(ref.environment, names) || '.'} ` +
        'To use one of your own, name its module in GRADUS_ENVIRONMENTS or package.json',
    );
  }
  // A fork goes on with the weights of the turn that it is in.
  const { weights } =
    stored.episode.turns.find(({ start, end }) => fork && fork.at >= start && fork.at < end) ?? {};
  const checkpoint = await checkpointThatSampled(store, stored, { signal, weights });
  const policies = new PolicyPool(store, createDecoder, 1);
  try {
    const by = { dtype: roundedTo(stored.spec.policy) };
    const lease = await policies.lease(checkpoint, by);
    let held = { weights: checkpoint.weights, lease };
    const policyOf = async (weights: string): Promise<Policy> => {
      if (weights === held.weights) return held.lease.policy;
      const other = await checkpointThatSampled(store, stored, { signal, weights });
      held.lease.release();
      held = { weights, lease: await policies.lease(other, by) };
      return held.lease.policy;
    };
    const tools = own ?? environment?.tools ?? null;
    return {
      place,
      checkpoint: { key: checkpoint.manifest.key, step: checkpoint.step, weights: checkpoint.weights },
      stored: {
        status: stored.episode.status,
        ...(stored.episode.outcome && { outcome: stored.episode.outcome }),
      },
      decoder: backendName(),
      replay: fork
        ? null
        : await replayEpisode(stored, lease, {
            tools,
            alternatives,
            signal,
            policyOf,
            ...(onProgress && { onProgress }),
          }),
      fork: fork
        ? await forkEpisode(stored, lease, fork, {
            environment: environment!,
            alternatives,
            signal,
            ...(onProgress && { onProgress: (tokens) => onProgress(tokens, null) }),
          })
        : null,
    };
  } finally {
    await policies.close();
  }
}
