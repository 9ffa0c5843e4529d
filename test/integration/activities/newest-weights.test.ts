import { expect, test } from 'vitest';
import { NewestWeights } from '../../../activities/rollout/newest-weights.ts';
import type { PolicyProvider } from '../../../activities/rollout/policies.ts';
import { PolicyPool } from '../../../activities/rollout/policy-pool.ts';
import { createRollout } from '../../../activities/rollout/rollout.ts';
import { parts } from '../../../activities/rollout/trajectory-parts.ts';
import { keyOfDraws } from '../../../core/episode/draws.ts';
import type { RolloutGroup } from '../../../core/episode/episode.ts';
import type { CheckpointRef } from '../../../core/refs.ts';
import type { GroupRequest } from '../../../core/requests/rollout.ts';
import { initialWeights } from '../../../engine/learner/initial-weights.ts';
import { createDecoder } from '../../../engine/decoder/decoder.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { AgentEpisode } from '../../../gateway/agent-episode.ts';
import type { Ask } from '../../../gateway/ask.ts';
import { saveCheckpoint } from '../../../store/training/checkpoints.ts';
import { keepVersion } from '../../../store/training/versions.ts';
import { tokenizer, tokenizerJson } from '../../support/fixture-tokenizer.ts';
import { groupRequest } from '../../support/group-request.ts';
import { checkpointAt, smallConfig } from '../../support/store/fixtures.ts';
import { openTestStore } from '../../support/test-store.ts';

// Episodes that go on with the newest weights, of a real decoder. What fresh weights write cannot be read, so that an episode
// has as many turns as it may.

const { store } = await openTestStore();
const signal = new AbortController().signal;
const environments = inThisProcess([calculatorEnvironment()]);
/** Any token is about as likely as any other, and three of them end a turn. */
const config = { ...smallConfig, headSize: 16, vocabSize: tokenizer.vocabSize, maxPositions: 4096 };
const TURNS = 3;

const checkpoints = await Promise.all(
  Array.from({ length: 12 }, (_, step) => {
    const content = checkpointAt(step, config, 'weights');
    const files = new Map([...content.files, ['tokenizer.json', Buffer.from(tokenizerJson)]]);
    const state = { ...content.state, weights: initialWeights(config, step) };
    return saveCheckpoint(store, { ...content, state, files });
  }),
);
const nameOf = new Map(checkpoints.map(({ weights }, after) => [weights, after]));

const groupOf = (run: string, over: Partial<GroupRequest> = {}): GroupRequest =>
  groupRequest(run, [{ environment: 'calculator', split: 'train', level: 1, index: 0 }], {
    samples: 2,
    checkpoint: checkpoints[2]!,
    sampling: { temperature: 1, topK: 0, topP: 1, maxTurns: TURNS, maxCompletionTokens: 4000 },
    continues: { after: 2 },
    ...over,
  });

/** Stages say these one after the other. */
async function publish(run: string, upTo: number, from = 0): Promise<void> {
  for (let after = from; after <= upTo; after++)
    await keepVersion(store, { run, stage: 'rl', after, checkpoint: checkpoints[after]! });
}

/** By a worker that has seen nothing, as an attempt after a kill is. */
async function advance(
  group: GroupRequest,
  around: (pool: PolicyPool) => PolicyProvider = (pool) => pool,
): Promise<{ group: RolloutGroup; key: string }> {
  const pool = new PolicyPool(store, () => createDecoder({ threads: 1 }));
  try {
    const rollout = createRollout({ store, policies: around(pool), environments });
    const { part } = await rollout.advance({ group }, signal);
    return { group: await store.read(part, parts), key: part.key };
  } finally {
    await pool.close();
  }
}

/** Whose weights sampled the turns of each episode. */
const versionsIn = ({ episodes, weights }: RolloutGroup): number[][] =>
  episodes.map(({ turns }) => turns.map((turn) => nameOf.get(turn.weights ?? weights)!));

/** An attempt that was killed has left its choices, and nothing else. */
const forget = (key: string): Promise<void> => store.remove([key]);

const each = (versions: number[]): number[][] => [versions, versions];

test('the first turn is of the weights that the group began with, each other one of the newest', async () => {
  await publish('newest', 4);
  const { group } = await advance(groupOf('newest'));
  expect(versionsIn(group)).toEqual(each([2, 4, 4]));
  expect(group.weights).toBe(checkpoints[2]!.weights);
  const { group: finished } = await advance(groupOf('finished', { continues: undefined } as object));
  expect(versionsIn(finished)).toEqual(each([2, 2, 2]));
  expect(finished.episodes.every(({ turns }) => turns.every((turn) => !('weights' in turn)))).toBe(true);
});

test('an attempt after a kill takes the weights of the first one for each turn, and samples the same', async () => {
  await publish('killed', 4);
  const first = await advance(groupOf('killed'));
  await publish('killed', 7, 5);
  await forget(first.key);
  const second = await advance(groupOf('killed'));
  expect(second.group).toEqual(first.group);
  // Without the choices of the first one it would not.
  const choices = (await store.list('runs/killed/parts/')).filter(({ key }) => key.includes('weights-'));
  expect(choices).toHaveLength(2 * (TURNS - 1));
  await store.remove([first.key, ...choices.map(({ key }) => key)]);
  const { group } = await advance(groupOf('killed'));
  expect(versionsIn(group)).toEqual(each([2, 7, 7]));
  expect(group.episodes).not.toEqual(first.group.episodes);
});

test('an attempt that was killed in the middle has chosen for the turns that it began, and the next one for the others', async () => {
  await publish('middle', 3);
  let leases = 0;
  const dying = (pool: PolicyPool): PolicyProvider => ({
    lease: async (checkpoint) => {
      // Between them the two episodes have begun three turns.
      if (++leases > 3) throw new Error('killed');
      return pool.lease(checkpoint);
    },
    close: () => pool.close(),
  });
  await expect(advance(groupOf('middle'), dying)).rejects.toThrow('killed');
  await publish('middle', 5, 4);
  const { group } = await advance(groupOf('middle'));
  const versions = versionsIn(group);
  // What the first attempt had chosen stays, and what it had not begun to choose is of the newest.
  expect(versions.flat().filter((one) => one === 3).length).toBeGreaterThan(0);
  expect(versions.flat().filter((one) => one === 5).length).toBeGreaterThan(0);
  for (const one of versions) expect(one).toEqual(one.toSorted((a, b) => a - b));
});

test('while new weights come all the time no episode waits for another, and what each turn samples is of its weights alone', async () => {
  await publish('moving', 2);
  let newest = 2;
  const moving = (pool: PolicyPool): PolicyProvider => ({
    lease: async (checkpoint) => {
      if (newest < 11) await publish('moving', ++newest, newest);
      return pool.lease(checkpoint);
    },
    close: () => pool.close(),
  });
  const request = groupOf('moving');
  const { group } = await advance(request, moving);
  const versions = versionsIn(group);
  expect(new Set(versions.flat()).size).toBeGreaterThan(2);
  for (const one of versions) expect(one).toEqual(one.toSorted((a, b) => a - b));

  // Whatever caches there were: a decoder that has nothing but the tokens before a turn samples the same, to the bit.
  const pool = new PolicyPool(store, () => createDecoder({ threads: 1 }), 1);
  const byVersion = versions.flatMap((turns, episode) =>
    turns.map((version, turn) => ({ version, episode, turn })),
  );
  for (const { version, episode: at, turn } of byVersion.toSorted((a, b) => a.version - b.version)) {
    const episode = group.episodes[at]!;
    const { start, end } = episode.turns[turn]!;
    const { policy, release } = await leased(pool, checkpoints[version]!);
    const { promptTokens } = group.tasks[episode.task]!;
    const again = await policy.sample({
      session: `${at}/${turn}`,
      prefix: promptTokens,
      continuation: episode.tokens.slice(0, start),
      mask: episode.mask.slice(0, start),
      maxNewTokens: end - start,
      stopTokens: [],
      sampling: request.sampling,
      key: keyOfDraws(request, { place: episode.task, sample: episode.sample }, 'rollout'),
    });
    expect(again.tokens).toEqual(episode.tokens.slice(start, end));
    expect(again.samplerLogprobs).toEqual(episode.samplerLogprobs.slice(start, end));
    policy.release(`${at}/${turn}`);
    release();
  }
  await pool.close();
});

test('a run that follows another one takes the steps of its choices, and its own weights after these', async () => {
  await publish('followed', 4);
  const { group: followed } = await advance(groupOf('followed'));
  await publish('followed', 8, 5);
  // Its own weights after step 4 are others, to tell whose they are.
  await publish('following', 3);
  await keepVersion(store, { run: 'following', stage: 'rl', after: 4, checkpoint: checkpoints[11]! });
  await publish('following', 8, 5);
  const { group } = await advance(groupOf('following', { continues: { after: 2, follow: 'followed' } }));
  expect(versionsIn(followed)).toEqual(each([2, 4, 4]));
  expect(versionsIn(group)).toEqual(each([2, 11, 11]));
  // What it has chosen is its own from then on.
  const kept = await store.list('runs/following/parts/');
  expect(kept.filter(({ key }) => key.includes('weights-'))).toHaveLength(2 * (TURNS - 1));
});

test('a run that has the name of a deleted one is not sampled by weights of that one', async () => {
  const pool = new PolicyPool(store, () => createDecoder({ threads: 1 }));
  const rollout = createRollout({ store, policies: pool, environments });
  const sampled = async () => {
    const { part } = await rollout.advance({ group: groupOf('deleted') }, signal);
    return versionsIn(await store.read(part, parts));
  };
  await publish('deleted', 6);
  expect(await sampled()).toEqual(each([2, 6, 6]));
  await store.remove((await store.list('runs/deleted/')).map(({ key }) => key));
  // The same worker goes on.
  await publish('deleted', 4);
  expect(await sampled()).toEqual(each([2, 4, 4]));
  await pool.close();
});

test('an agent has the newest weights at each request, and the same turn when it asks again', async () => {
  await publish('agent', 3);
  const pool = new PolicyPool(store, () => createDecoder({ threads: 1 }));
  const { continues = { after: 2 }, ...group } = groupOf('agent');
  /** Another worker has seen nothing, and finds what is stored. */
  const open = async (folder: string) => {
    const newest = new NewestWeights(store, pool);
    const speaker = await newest.speaker(group, signal);
    return AgentEpisode.open({
      ...newest.episode({ ...group, continues }, 0, signal),
      id: 'agent',
      model: 'policy',
      tokenizer,
      dialectFor: () => speaker.dialectFor({ tools: [] }),
      maxPositions: config.maxPositions,
      sampling: group.sampling,
      key: keyOfDraws(group, { place: 0, sample: 0 }, 'rollout'),
      store,
      folder,
      startsOver: true,
    });
  };
  const ask = (content: string): Ask => ({
    model: 'policy',
    messages: [{ role: 'user', content }],
    tools: [],
    maxTokens: 8,
    stream: false,
  });
  const sent = {
    body: 'body',
    idempotencyKey: undefined,
    isRetry: false,
    gone: signal,
    over: Promise.resolve(),
  };

  const episode = await open('runs/agent/turns');
  const first = await episode.take(ask('one'), sent);
  await publish('agent', 6, 4);
  const second = await episode.take(ask('two'), sent);
  await episode.close();
  expect([first, second].map(({ weights }) => nameOf.get(weights!))).toEqual([3, 6]);

  await publish('agent', 8, 7);
  const { created: _, ...again } = await (await open('runs/agent/turns-of-another')).take(ask('one'), sent);
  const { created: __, ...before } = first;
  expect(again).toEqual(before);
  await pool.close();
});

async function leased(pool: PolicyPool, checkpoint: CheckpointRef) {
  const lease = await pool.lease(checkpoint);
  return { policy: lease.policy, release: () => lease.release() };
}
