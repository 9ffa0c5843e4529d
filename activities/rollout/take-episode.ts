import { keyOfDraws } from '../../core/episode/draws.ts';
import { isRecording } from '../../core/schema/policy.ts';
import type { AdvanceProgress, OpenGroup } from '../../core/requests/rollout.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import type { HostCaller } from '../../environments/host/hosted-environment.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { advanceEpisode } from './advance-episode.ts';
import { beginCall } from './begin-call.ts';
import { episodeIndex, longName } from './group-names.ts';
import { isContinuing } from './newest-weights.ts';
import type { NewestWeights } from './newest-weights.ts';
import type { PolicyLease } from './policies.ts';
import { putImages } from './put-images.ts';
import { storingPieces } from './stored-pieces.ts';
import { speaking, toolsOfTask } from './tools-of-task.ts';
import type { FollowedEpisode } from './trajectory-parts.ts';

interface Taking {
  store: ObjectStore;
  environments: Environments;
  newest: NewestWeights;
}

/** One activity's work on its episodes. */
export interface Advance {
  /** In this process. */
  number: number;
  progress: AdvanceProgress;
}

/** Advances an episode until it has ended or waits for a long tool call. */
export async function takeEpisode(
  deps: Taking,
  request: OpenGroup,
  lease: PolicyLease,
  { task, episode }: FollowedEpisode,
  { number, progress }: Advance,
  asker: HostCaller,
): Promise<void> {
  // One that could not even be posed has nothing to let go of.
  if (episode.status.kind === 'failed' && episode.turns.length === 0) return;
  const index = episodeIndex(request, episode);
  const policySession = `${number}/${index}`;
  const room = lease.config.maxPositions;
  if (task.promptTokens.length >= room) {
    episode.status = {
      kind: 'failed',
      boundary: 'policy',
      reason: `the prompt has ${task.promptTokens.length} tokens and the model holds ${room}: raise model.maxPositions`,
    };
    return;
  }
  const { environment, tools } = toolsOfTask(deps, task);
  const { tokenizer } = lease;
  const dialect = lease.dialectFor(speaking(deps, task));
  const { firstTask, toolChoice = 0, beams } = request;
  const drawn = { place: firstTask + episode.task, sample: episode.sample };
  const sampler = isContinuing(request)
    ? deps.newest.episode(request, index, asker.signal)
    : {
        policy: isRecording(request.policy)
          ? storingPieces(deps.store, request.policy, request, index, lease.policy)
          : lease.policy,
      };
  try {
    await advanceEpisode(
      {
        ...sampler,
        tokenizer,
        dialect,
        environment,
        ref: task.ref,
        tools,
        beginning: beginCall(
          { dialect, tokenizer },
          tools,
          toolChoice,
          keyOfDraws(request, drawn, 'tool-choice'),
        ),
        sampling: request.sampling,
        ...(beams && { beams: request.samples > 1 ? { ...beams, group: episode.sample } : beams }),
        maxPositions: room,
        promptTokens: task.promptTokens,
        episodeId: `${longName(request)}/${index}`,
        policySession,
        key: keyOfDraws(request, drawn, 'rollout'),
        sampled: (tokens) => void (progress.tokens += tokens),
        putImages: (called) => putImages(deps.store, request.run, called, { signal: asker.signal }),
        ...asker,
      },
      episode,
    );
  } finally {
    sampler.policy.release(policySession);
  }
}
