import { GradusError } from '../../core/errors.ts';
import type { RolloutGroup } from '../../core/episode/episode.ts';
import type { Json } from '../../core/json/json.ts';
import type { BlobRef } from '../../core/refs.ts';
import { rolloutKey, rolloutsOfRun, rolloutsPrefix } from '../keys.ts';
import { checkedJson } from '../codec.ts';
import type { CallOptions, StoredObject, ObjectStore } from '../objects/object-store.ts';
import { fromStoredGroup, toStoredGroup } from '../sampler-logprobs.ts';
import type { StoredGroup } from '../sampler-logprobs.ts';

const FORMAT = 'gradus.rollout/1';

/** Where in a run a group was sampled. */
export interface RolloutPlace {
  run: string;
  stage: string;
  step: number;
}

type WithFormat = RolloutGroup & { format: string };

const groups = checkedJson<WithFormat>((json, key) => {
  // Thousands of tokens: what no other software would write is looked at once an episode, not once a token.
  if (isRollout(json) && json.episodes.every(isWhole))
    return fromStoredGroup(json as unknown as StoredGroup<WithFormat>);
  throw new GradusError(
    'store',
    'invalid-trajectory',
    `${key} is not of format ${FORMAT}: use another object`,
  );
}, toStoredGroup);

/**
 * One group as one JSON object at `runs/<run>/rollouts/<stage>/<step>/<group>.json`. JSON prints the shortest text
 * that reads back as the same double, so log-probabilities come back exactly (−0 as 0). First writer wins: the
 * group that counts is the one that comes back.
 * Throws GradusError('store', 'invalid-trajectory') for what would not come back: other lengths, NaN, infinities.
 */
export async function putTrajectories(
  store: ObjectStore,
  { run, stage, step }: RolloutPlace,
  group: RolloutGroup,
  options: CallOptions = {},
): Promise<StoredObject<RolloutGroup>> {
  return putTrajectoriesAt(store, rolloutKey(run, stage, step, group.id), group, options);
}

/** The same under another key. */
export async function putTrajectoriesAt(
  store: ObjectStore,
  key: string,
  group: RolloutGroup,
  options: CallOptions = {},
): Promise<StoredObject<RolloutGroup>> {
  for (const { sample, tokens, mask, samplerLogprobs, kept } of group.episodes) {
    const whole = [mask, samplerLogprobs, kept ?? tokens].every(({ length }) => length === tokens.length);
    if (!whole || !samplerLogprobs.every(Number.isFinite)) {
      throw new GradusError(
        'store',
        'invalid-trajectory',
        `group ${group.id}, sample ${sample}: ${tokens.length} tokens, ${mask.length} in the mask, ` +
          `${samplerLogprobs.length} log-probabilities, which must be as many and finite: the policy that sampled it is at fault`,
      );
    }
  }
  const { ref, value } = await store.putIfAbsent(key, groups, { format: FORMAT, ...group }, options);
  return { ref, value: withoutFormat(value) };
}

export async function loadTrajectories(
  store: ObjectStore,
  ref: BlobRef,
  options: CallOptions = {},
): Promise<RolloutGroup> {
  return withoutFormat(await store.read(ref, groups, options));
}

/** What lies at a key; null where nothing does. */
export async function findTrajectories(
  store: ObjectStore,
  key: string,
  options: CallOptions = {},
): Promise<RolloutGroup | null> {
  const found = await store.find(key, groups, options);
  return found && withoutFormat(found);
}

/**
 * The keys of a run's groups, or of one stage's, as they were first judged: later objects of the same groups are left out.
 * Throws GradusError('store', 'no-rollouts') where there is none.
 */
export async function rolloutKeys(
  store: ObjectStore,
  run: string,
  stage: string | undefined,
  options: CallOptions = {},
): Promise<string[]> {
  const prefix = stage === undefined ? rolloutsOfRun(run) : rolloutsPrefix(run, stage);
  const keys = (await store.list(prefix, options)).map(({ key }) => key);
  if (keys.length === 0) {
    const where = stage === undefined ? run : `stage ${stage} of ${run}`;
    throw new GradusError('store', 'no-rollouts', `${where} has no episodes in this store`);
  }
  return keys.filter((key) => !/\.(judged|late-[^/]+)\.json$/.test(key));
}

/**
 * Groups as a ladder has last judged them, by the key of what the fast tier had left; a late verdict counts for more than
 * the step's own. Empty where no ladder was there.
 */
export async function lastJudged(
  store: ObjectStore,
  run: string,
  stage: string,
  options: CallOptions = {},
): Promise<Map<string, string>> {
  const keys = (await store.list(rolloutsPrefix(run, stage), options)).map(({ key }) => key);
  const last = new Map<string, { key: string; step: number }>();
  for (const key of keys) {
    const named = /^(.*)\.(?:judged|late-.*-(\d+))\.json$/.exec(key);
    if (!named) continue;
    const [of, step] = [`${named[1]}.json`, Number(named[2] ?? 0)];
    if (step >= (last.get(of)?.step ?? 0)) last.set(of, { key, step });
  }
  return new Map([...last].map(([of, { key }]) => [of, key]));
}

function withoutFormat(value: RolloutGroup & { format: string }): RolloutGroup {
  const { format: _, ...group } = value;
  return group;
}

const isRollout = (json: Json): json is { [key: string]: Json; episodes: Json[] } =>
  isObject(json) &&
  json['format'] === FORMAT &&
  Array.isArray(json['tasks']) &&
  Array.isArray(json['episodes']);

/** Whether the parts of a stored episode belong together. */
export function isWhole(episode: Json): boolean {
  if (!isObject(episode) || !isObject(episode['status'] ?? null)) return false;
  const lengths = ['tokens', 'mask', 'logprobs'].map((name) => {
    const array = episode[name];
    return Array.isArray(array) ? array.length : -1;
  });
  const { kept } = episode;
  if (kept !== undefined && !(Array.isArray(kept) && kept.length === lengths[0])) return false;
  return (
    lengths[0]! >= 0 && lengths.every((length) => length === lengths[0]) && Array.isArray(episode['turns'])
  );
}

const isObject = (json: Json): json is { [key: string]: Json } =>
  typeof json === 'object' && json !== null && !Array.isArray(json);
