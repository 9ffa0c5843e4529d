import { GradusError } from '../../core/errors.ts';
import type { RolloutGroup } from '../../core/episode.ts';
import type { Json } from '../../core/json.ts';
import type { BlobRef } from '../../core/refs.ts';
import { rolloutKey } from './keys.ts';
import type { CallOptions, ObjectStore } from './object-store.ts';

const FORMAT = 'gradus.rollout/1';

/** Where in a run a group was sampled. */
export interface RolloutPlace {
  run: string;
  stage: string;
  step: number;
}

/**
 * One group as one JSON object at `runs/<run>/rollouts/<stage>/<step>/<group>.json`. JSON prints the shortest text
 * that reads back as the same double, so log-probabilities come back exactly (−0 as 0). First writer wins: the
 * group that counts is what the returned ref has.
 * Throws GradusError('store', 'invalid-trajectory') for what would not come back: other lengths, NaN, infinities.
 */
export async function saveTrajectories(
  store: ObjectStore,
  { run, stage, step }: RolloutPlace,
  group: RolloutGroup,
  options: CallOptions = {},
): Promise<BlobRef> {
  for (const { sample, tokens, mask, logprobs } of group.episodes) {
    const whole = mask.length === tokens.length && logprobs.length === tokens.length;
    if (!whole || !logprobs.every(Number.isFinite)) {
      throw new GradusError(
        'store',
        'invalid-trajectory',
        `group ${group.id}, sample ${sample}: ${tokens.length} tokens, ${mask.length} in the mask, ` +
          `${logprobs.length} log-probabilities, which must be as many and finite: the policy that sampled it is at fault`,
      );
    }
  }
  return store.putJson(rolloutKey(run, stage, step, group.id), { format: FORMAT, ...group }, options);
}

export async function loadTrajectories(
  store: ObjectStore,
  ref: BlobRef,
  options: CallOptions = {},
): Promise<RolloutGroup> {
  const json = await store.getJson(ref, options);
  if (!isRollout(json)) {
    throw new GradusError(
      'store',
      'invalid-trajectory',
      `${ref.key} is not of format ${FORMAT}: use another object`,
    );
  }
  const { format: _, ...group } = json;
  // The digest is right and the format is ours: these are the bytes that saveTrajectories wrote.
  return group as unknown as RolloutGroup;
}

const isRollout = (json: Json): json is { [key: string]: Json } =>
  typeof json === 'object' && json !== null && !Array.isArray(json) && json['format'] === FORMAT;
