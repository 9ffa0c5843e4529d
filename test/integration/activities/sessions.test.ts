import { afterAll, expect, test } from 'vitest';
import { createRollout } from '../../../activities/rollout/rollout.ts';
import { parts } from '../../../activities/rollout/trajectory-parts.ts';
import { createVerification } from '../../../activities/verification/verifiers.ts';
import { GradusError } from '../../../core/errors.ts';
import type { Environment } from '../../../environments/contract/environment.ts';
import type { GroupRequest } from '../../../core/requests/rollout.ts';
import type { Sessions } from '../../../environments/contract/session.ts';
import { hostedHere } from '../../../environments/host/hosted-environment.ts';
import { loadImage } from '../../../store/rollout/images.ts';
import { runKey } from '../../../store/keys.ts';
import { runClaims } from '../../../store/run/run-claim.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { groupRequest } from '../../support/group-request.ts';
import { HouseServer, houseWith, WAYS } from '../../support/houses.ts';
import { poolSaying } from '../../support/saying.ts';
import { openTestStore } from '../../support/test-store.ts';

const { store } = await openTestStore();
afterAll(() => store.close());
const { signal } = new AbortController();

const called = (name: string, given: object) =>
  `<tool_call>${JSON.stringify({ name, arguments: given })}</tool_call>`;
const EVERY_LAMP = [
  called('light', {}),
  called('go', { room: 'kitchen' }),
  called('light', {}),
  called('go', { room: 'attic' }),
  called('light', {}),
];
const ALL = { sampling: { temperature: 1, topK: 0, topP: 1, maxTurns: 8, maxCompletionTokens: 400 } };
const REWARD: Pick<GroupRequest, 'reward'> = {
  reward: {
    components: [{ verifier: 'environment', role: 'outcome', weight: 1, gatedBy: null }],
    truncated: 'train',
  },
};

let runs = 0;
async function rollOut(environment: Environment, turns: readonly string[], run = `house-${++runs}`) {
  const environments = new Map([[environment.name, hostedHere(environment)]]);
  const ref = { environment: environment.name, split: 'train' as const, level: 1, index: 3 };
  const group = groupRequest(run, [ref], { ...ALL, ...REWARD });
  const rollout = createRollout({ store, environments, policies: poolSaying(turns) });
  const { part } = await rollout.advance({ group }, signal);
  const { episodes } = await store.read(part, parts);
  const verify = async () => {
    const verification = createVerification({ store, environments });
    const { trajectories } = await verification.verifyGroup({ group, part, followed: [] }, signal);
    return (await loadTrajectories(store, trajectories!)).episodes[0]!.outcome;
  };
  return { rollout, group, episode: episodes[0]!, verify };
}

test.each(Object.keys(WAYS))(
  'an episode that its environment ends is scored by what it gave, and leaves no session: %s',
  async (way) => {
    const server = new HouseServer();
    const sessions = way === 'reattach' ? server.sessions() : WAYS[way]!();
    const { episode, verify } = await rollOut(houseWith(sessions), EVERY_LAMP);
    expect(episode.status).toEqual({ kind: 'ended' });
    expect(episode.turns.map(({ observation }) => observation!.reward)).toEqual([
      1,
      undefined,
      1,
      undefined,
      1,
    ]);
    expect(episode.session!.ended).toEqual({ info: { lit: [0, 1, 2] } });
    // Nobody reads what ends the episode.
    expect(episode.tokens).toHaveLength(episode.turns.at(-1)!.end);
    expect(await verify()).toMatchObject({ kind: 'scored', reward: 1 });
    if (way === 'reattach') expect([server.houses.size, server.closed]).toEqual([0, 1]);
  },
);

test('what a session shows is kept with its run under its digest, once, and named in the episode', async () => {
  const { episode, group } = await rollOut(houseWith(WAYS['snapshot']!()), EVERY_LAMP);
  const images = episode.turns.flatMap(({ observation }) => observation!.images ?? []);
  expect(images).toHaveLength(3);
  const shown = await Promise.all(images.map((image) => loadImage(store, group.run, image)));
  expect(shown.map((bytes) => Buffer.from(bytes).toString('latin1'))).toEqual(
    ['0', '0 1', '0 1 2'].map((lit) => `\x89PNG ${lit}`),
  );
  const keys = (await store.list(`runs/${group.run}/images/`)).map(({ key }) => key);
  const expected = images.map(({ sha256 }) => `runs/${group.run}/images/${sha256}`);
  expect(keys).toEqual(expected.toSorted());
});

test('an episode that ends otherwise has the last word of its session, too', async () => {
  const { episode, verify } = await rollOut(houseWith(WAYS['replay']!()), [
    EVERY_LAMP[0]!,
    '<answer>done</answer>',
  ]);
  expect(episode).toMatchObject({ status: { kind: 'answered' }, session: { ended: { info: { lit: [0] } } } });
  expect(await verify()).toMatchObject({ kind: 'scored', reward: 1 / 3 });
});

test('an episode that ends before its environment gave a reward is worth nothing', async () => {
  const { verify } = await rollOut(houseWith(WAYS['fold']!()), ['<answer>done</answer>']);
  expect(await verify()).toMatchObject({ kind: 'scored', reward: 0 });
});

test('a session that cannot end is a failure of the environment and no zero, and is closed', async () => {
  let closed = 0;
  const broken = houseWith({
    resume: 'replay',
    open: () => ({
      act: () => 'done',
      end: () => {
        throw new Error('the referee has left');
      },
      close: () => void closed++,
    }),
  });
  const { episode, verify } = await rollOut(broken, [EVERY_LAMP[0]!, '<answer>done</answer>']);
  expect(closed).toBe(1);
  const failed = {
    kind: 'failed',
    boundary: 'environment',
    reason: expect.stringContaining('referee') as string,
  };
  expect(episode.status).toEqual(failed);
  expect(await verify()).toEqual({ ...failed, acted: true });
});

test('a session that cannot be closed spoils nothing, and what it takes to come back is not kept', async () => {
  let closed = 0;
  const sessions = WAYS['snapshot']!() as Extract<Sessions, { resume: 'snapshot' }>;
  const deaf = houseWith({
    ...sessions,
    every: 1,
    open: async (...given: Parameters<typeof sessions.open>) =>
      Object.assign(await sessions.open(...given), {
        close: () => {
          closed++;
          throw new Error('the door is stuck');
        },
      }),
  });
  const { episode } = await rollOut(deaf, EVERY_LAMP);
  expect(episode.status).toEqual({ kind: 'ended' });
  expect(episode.session).toEqual({ ended: { info: { lit: [0, 1, 2] } } });
  expect(closed).toBe(1);
});

test('tasks have tools of their own where they say so, which are kept with the group', async () => {
  const house = houseWith(WAYS['fold']!());
  const tools = house.tools.filter(({ name }) => name !== 'go');
  const own = { ...house, task: (ref: Parameters<typeof house.task>[0]) => ({ ...house.task(ref), tools }) };
  const { episode, rollout, group } = await rollOut(own, [
    EVERY_LAMP[0]!,
    EVERY_LAMP[1]!,
    '<answer>x</answer>',
  ]);
  expect(episode.turns.map(({ observation }) => observation?.text)).toEqual([
    'lit the hall\n[image image/png]',
    'error: no tool go; tools: light, look',
    undefined,
  ]);
  const { part } = await rollout.advance({ group }, signal);
  const { tasks } = await store.read(part, parts);
  expect(tasks[0]!.tools!.map(({ name }) => name)).toEqual(['light', 'look']);
});

test('a group that fails lets go of what its episodes have opened on servers', async () => {
  const server = new HouseServer();
  const { rollout, group } = await rollOut(houseWith(server.sessions()), EVERY_LAMP);
  const id = `${group.run}/${group.stage}/${group.step}/${group.group}/0`;
  const open = server.sessions() as Extract<ReturnType<typeof server.sessions>, { resume: 'reattach' }>;
  await open.open({} as never, { id, signal, opening: 'of an attempt that is gone' });
  await rollout.closeSessions({ group }, signal);
  expect(server.houses.size).toBe(0);
});

test('a run goes on with the tasks that it began with, or not at all', async () => {
  const run = 'house-of-version-1';
  const spec = { run, taskVersions: { 'house-fold': '1' } } as never;
  await store.putIfAbsent(runKey(run), runClaims, { execution: 'x', spec });
  const house = (version: string) => houseWith(WAYS['fold']!(), { version });
  await expect(rollOut(house('2'), EVERY_LAMP, run)).rejects.toMatchObject({
    boundary: 'environment',
    type: 'version',
    retryable: true,
    message: expect.stringMatching(/in version 1, and this process now has 2/u) as string,
  });
  expect((await rollOut(house('1'), EVERY_LAMP, run)).episode.status).toEqual({ kind: 'ended' });
});

test('a source of tasks that is not there yet is asked again', async () => {
  let asked = 0;
  const house = houseWith(WAYS['fold']!());
  const late: Environment = {
    ...house,
    task: async (ref) => {
      if (++asked < 3) throw new GradusError('environment', 'starting', 'starts', { retryable: true });
      return house.task(ref);
    },
  };
  const { episode } = await rollOut(late, EVERY_LAMP);
  expect(episode.status).toEqual({ kind: 'ended' });
});
