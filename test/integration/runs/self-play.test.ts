import { beforeAll, expect, test } from 'vitest';
import type { RolloutGroup } from '../../../core/episode/episode.ts';
import { isRewarded, LEARNABILITY } from '../../../core/episode/outcome.ts';
import { armName } from '../../../core/names.ts';
import type { StoredStep } from '../../support/self-play-steps.ts';
import { playedSteps } from '../../support/self-play-steps.ts';
import { forkEpisode } from '../../../activities/replay/fork-episode.ts';
import { replayEpisode } from '../../../activities/replay/replay-episode.ts';
import { checkpointThatSampled, storedEpisode } from '../../../activities/replay/stored-episode.ts';
import { placeOf } from '../../../runs/episodes/place.ts';
import { reweighStep } from '../../../runs/reweigh/reweigh.ts';
import { rolloutsPrefix } from '../../../store/keys.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { readTaskSource } from '../../../store/training/task-source.ts';
import { DONE } from '../../support/ended.ts';
import { selfPlaySpec } from '../../support/self-play-spec.ts';
import { openPlainRuns } from './plain-runs.ts';

// One policy that proposes programs and solves them, without Temporal.

const { store, train, gradus, policies, environments } = await openPlainRuns();
let steps: StoredStep[];
const groupsOf = async (run: string, step: number): Promise<(RolloutGroup & { key: string })[]> => {
  const { keys } = await store.listFolder(`${rolloutsPrefix(run, 'play')}${String(step).padStart(6, '0')}/`);
  return Promise.all(
    keys
      .toSorted()
      .map(async (key) => ({ key, ...(await loadTrajectories(store, (await store.head(key))!)) })),
  );
};

beforeAll(async () => {
  expect((await train('played', selfPlaySpec())).end).toEqual(DONE);
  steps = await playedSteps(store, 'played');
}, 600_000);

test('every step proposes, keeps what is new, and solves it in the same step', async () => {
  expect(steps).toHaveLength(4);
  let kept = 0;
  for (const { stageStep, rollout } of steps) {
    const facts = rollout!.selfPlay!;
    expect(facts.proposals).toBe(12);
    expect(facts.made + facts.known + facts.invalid + facts.malformed + facts.setAside).toBe(12);
    kept += facts.made - facts.repeated;
    expect(facts.kept).toBe(kept);
    const solver = (await groupsOf('played', stageStep)).filter(({ tasks }) => tasks[0]!.ref.level <= 3);
    const fresh = solver.flatMap(({ tasks }) =>
      tasks.filter(({ ref }) => ref.source?.sha256 === facts.source),
    );
    expect(fresh).toHaveLength(Math.min(18, kept));
    expect(facts.trials).toBe(4 * (facts.made - facts.repeated));
  }
  expect(kept).toBeGreaterThan(3);
}, 600_000);

test('a stored episode has all that its task is made of, and its prompt is that of the source', async () => {
  for (const { ref, prompt } of (await groupsOf('played', 4)).flatMap(({ tasks }) => tasks)) {
    if (ref.source === undefined) continue;
    const { arms } = await readTaskSource(store, ref.source);
    const level = ref.level > 3 ? ref.level - 3 : ref.level;
    const there = arms[armName({ ...ref, level })]!;
    expect(ref.made).toEqual((ref.references ?? [ref.index]).map((index) => there[index]!.proposal));
    for (const proposal of ref.level === 3 ? [] : ref.made!)
      expect(prompt).toContain((proposal as { program: string }).program);
  }
});

test('episodes of both roles are sampled again to the bit, forked, and shown', async () => {
  const { signal } = new AbortController();
  const groups = await groupsOf('played', 4);
  for (const asks of [true, false]) {
    const group = groups.findIndex(
      ({ id, tasks }) => !id.endsWith('.judged') && tasks[0]!.ref.level > 3 === asks,
    );
    const number = Number(/group-(\d+)/.exec(groups[group]!.id)![1]);
    const place = { run: 'played', stage: 'play', step: 4, group: number, episode: 0 };
    const stored = await storedEpisode(store, place);
    expect(stored.task.ref.made).toBeDefined();
    const lease = await policies.lease(await checkpointThatSampled(store, stored));
    try {
      const again = await replayEpisode(stored, lease, { tools: [], alternatives: 1, signal });
      expect(again).toMatchObject({ equal: true, differences: [] });
      const environment = environments.get('programs')!;
      const fork = { at: stored.episode.turns[0]!.start, token: null, seed: null };
      const forked = await forkEpisode(stored, lease, fork, { environment, alternatives: 1, signal });
      expect(forked.stopped).toBeNull();
      expect(forked.status).toEqual(stored.episode.status);
    } finally {
      lease.release();
    }
    const shown = await gradus('episode', placeOf(place));
    expect(shown.stdout).toContain(stored.task.prompt.split('\n')[0]);
  }
}, 600_000);

test('no task of a source is there twice', async () => {
  const last = (await groupsOf('played', 4)).flatMap(({ tasks }) => tasks).find(({ ref }) => ref.source)!;
  const { arms } = await readTaskSource(store, last.ref.source!);
  for (const tasks of Object.values(arms))
    expect(new Set(tasks.map(({ canonical }) => canonical)).size).toBe(tasks.length);
});

test('a proposal is rewarded by how its own task was solved, and what is none by what it lacks', async () => {
  const kinds = new Set<string>();
  for (const { stageStep } of steps) {
    const groups = await groupsOf('played', stageStep);
    for (const { tasks, episodes, id } of groups.filter(({ tasks }) => tasks[0]!.ref.level > 3)) {
      expect(tasks.every(({ ref }) => ref.level > 3)).toBe(true);
      if (!id.endsWith('.judged')) continue;
      for (const { outcome } of episodes) {
        if (!isRewarded(outcome!)) continue;
        const own = outcome.components.find(({ verifier }) => verifier === LEARNABILITY)!;
        expect(own.contribution).toBe(outcome.reward);
        kinds.add(own.evidence!.split(':')[0]!);
        if (own.evidence!.startsWith('malformed')) expect(outcome.reward).toBe(-1);
        if (own.evidence!.startsWith('invalid')) expect(outcome.reward).toBe(-0.5);
        if (own.evidence === 'made') expect(outcome.reward).toBeLessThan(1);
      }
    }
  }
  // Which others there are depends on the processor; proposals.test.ts has them all.
  expect([...kinds]).toEqual(expect.arrayContaining(['malformed', 'made']));
});

test('what each step learnt from is weighed again to the bit', async () => {
  for (const { stageStep } of steps) {
    const { reproduced } = await reweighStep(
      store,
      { run: 'played', stage: 'play', step: stageStep },
      new Map(),
    );
    expect(reproduced).toEqual({ exactly: true });
  }
});

test('a proposer that is not trained proposes all the same, and nothing is learnt of it', async () => {
  expect((await train('fixed', selfPlaySpec({ maxSteps: 2, trainProposer: false }))).end).toEqual(DONE);
  const fixed = await playedSteps(store, 'fixed');
  for (const { stageStep, rollout, batch } of fixed) {
    const facts = rollout!.selfPlay!;
    expect(facts.proposals).toBe(12);
    const solver = (await groupsOf('fixed', stageStep)).filter(({ tasks }) => tasks[0]!.ref.level <= 3);
    const episodes = solver.reduce((sum, group) => sum + group.episodes.length, 0);
    expect(batch!.sequences === 0 || batch!.sequences === episodes).toBe(true);
    if (episodes === 0) continue;
    const { reproduced } = await reweighStep(
      store,
      { run: 'fixed', stage: 'play', step: stageStep },
      new Map(),
    );
    expect(reproduced.exactly).not.toBe(false);
  }
}, 600_000);
