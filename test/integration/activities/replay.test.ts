import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { forkEpisode } from '../../../activities/replay/fork-episode.ts';
import type { Fork } from '../../../activities/replay/fork-episode.ts';
import { replayEpisode } from '../../../activities/replay/replay-episode.ts';
import type { ReplayAnswer } from '../../../activities/replay/replay.ts';
import { checkpointThatSampled, storedEpisode } from '../../../activities/replay/stored-episode.ts';
import type { EpisodePlace, ReplayableEpisode } from '../../../activities/replay/stored-episode.ts';
import { PolicyPool } from '../../../activities/rollout/policy-pool.ts';
import { plainRun } from '../../support/plain-run.ts';
import type { RolloutGroup } from '../../../core/episode/episode.ts';
import { openDashboard } from '../../../dashboard/open.ts';
import type { Dashboard } from '../../../dashboard/server.ts';
import { createDecoder } from '../../../engine/decoder/decoder.ts';
import type { DecoderBackendKind } from '../../../engine/decoder/load-backend.ts';
import { findAddon } from '../../../engine/decoder/native/addon.ts';
import { OWN_LOADER } from '../../../engine/own-module.ts';
import { createLocalLearner } from '../../../engine/learner/local-learner.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { placeOf } from '../../../runs/episodes/place.ts';
import { ReplayJobs } from '../../../runs/replay/jobs.ts';
import type { ReplayJob } from '../../../runs/replay/jobs.ts';
import { applyRetention } from '../../../store/training/retention.ts';
import { putTrajectories, loadTrajectories, rolloutKeys } from '../../../store/rollout/trajectories.ts';
import { readSettings } from '../../../workers/settings.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { hasChromium, launchChromium } from '../../support/chromium.ts';
import { DONE } from '../../support/ended.ts';
import { houseWith, WAYS } from '../../support/houses.ts';
import { enter, overhear, withPage, wrongIn } from '../../support/looks.ts';
import { openTestStore } from '../../support/test-store.ts';
import { hardestGoal, inOrder } from '../../support/tiny-spec.ts';

// Trained policies: what they have sampled is sampled again, with nothing but what is stored of it.

const { server, store } = await openTestStore();
const ROOT = path.resolve(import.meta.dirname, '../../..');
const environments = inThisProcess([
  calculatorEnvironment(),
  ...['fold', 'replay', 'pin'].map((way) => houseWith(WAYS[way]!())),
]);
const { signal } = new AbortController();
const KEPT = { keepLast: 1, keepBest: 0, keepEvery: 1 };

const brief = briefSpec();
const [warmStart, rl] = brief.stages;
const tasks = ['calculator', 'house-fold', 'house-replay', 'house-pin'].map((environment) => ({
  environment,
  levels: [1],
}));
const LOOKS = { tasks: 8, everySteps: 2, successAtLeast: hardestGoal(8, 1) };
/** Trees with tools that are drawn, at temperatures that change; and the same episodes for a second stage. */
const TREES = {
  ...brief,
  retention: KEPT,
  sampling: { maxTurns: 6, maxCompletionTokens: 150 },
  reward: { components: [{ verifier: 'environment', role: 'outcome', weight: 1 }] },
  stages: [
    { ...warmStart, tasks: tasks.slice(1), graduation: { ...warmStart.graduation, tasksPerLevel: 4 } },
    {
      ...rl,
      name: 'tree',
      tasks: tasks.slice(1, 3),
      groupsPerStep: 4,
      groupsPerWorkflow: 2,
      numGenerations: 6,
      collect: { kind: 'tree', roots: 2, branches: 2 },
      exploration: { temperature: { from: 1.4, to: 0.9, steps: 2 }, toolChoice: 0.4 },
      graduation: LOOKS,
    },
    { ...rl, name: 'pinned', tasks: tasks.slice(3), groupsPerStep: 2, maxSteps: 2, graduation: LOOKS },
    {
      ...rl,
      name: 'again',
      tasks: tasks.slice(1, 3),
      groupsPerStep: 2,
      collect: { kind: 'stored', stage: 'tree' },
      algorithm: { kind: 'dapo', minibatch: 16, maxRefills: 0, importanceCap: 2 },
      graduation: LOOKS,
    },
  ],
  evaluation: { tasks: tasks.slice(1, 3), count: 8 },
};
/** Both cuts, and an adapter. */
const CUT = {
  ...brief,
  retention: KEPT,
  model: { ...brief.model, lora: { rank: 4 } },
  sampling: { ...brief.sampling, topK: 6, topP: 0.95 },
  stages: inOrder(warmStart, rl),
};

const kinds: DecoderBackendKind[] = 'addon' in findAddon() ? ['native', 'stock'] : ['stock'];
const policies = kinds.map((backend, i) => ({
  backend,
  pool: new PolicyPool(store, () => createDecoder({ backend, threads: 1 + i }), 1),
}));
const [{ pool }] = policies as [(typeof policies)[0]];

let all: { place: EpisodePlace; group: RolloutGroup }[];
beforeAll(async () => {
  const learner = await createLocalLearner();
  const trained = new PolicyPool(store, () => createDecoder({ threads: 2 }));
  const runs = { trees: TREES, cut: CUT };
  for (const [run, spec] of Object.entries(runs)) {
    const { end } = await plainRun(spec, { store, environments, policies: trained, learner, run });
    expect(end).toEqual(DONE);
  }
  await learner.close();
  await trained.close();
  const keys = (await Promise.all(Object.keys(runs).map((run) => rolloutKeys(store, run, undefined)))).flat();
  all = (
    await Promise.all(
      keys.map(async (key) => {
        const group = await loadTrajectories(store, (await store.head(key))!);
        const [, run, , stage, step, name] = key.split('/') as string[] & { 0: string };
        const place = { run: run!, stage: stage!, step: Number(step), group: Number(name!.match(/\d+/)![0]) };
        return group.episodes.map((_, episode) => ({ place: { ...place, episode }, group }));
      }),
    )
  ).flat();
}, 600_000);
afterAll(() => Promise.all(policies.map((one) => one.pool.close())));

const open = (place: EpisodePlace): Promise<ReplayableEpisode> => storedEpisode(store, place);
const toolsOf = ({ task }: ReplayableEpisode) => environments.get(task.ref.environment)!.tools;

async function replayed(stored: ReplayableEpisode, alternatives = 3, by = pool) {
  const lease = await by.lease(await checkpointThatSampled(store, stored));
  try {
    return await replayEpisode(stored, lease, { tools: toolsOf(stored), alternatives, signal });
  } finally {
    lease.release();
  }
}

async function forked(stored: ReplayableEpisode, fork: Fork) {
  const lease = await pool.lease(await checkpointThatSampled(store, stored));
  const environment = environments.get(stored.task.ref.environment)!;
  try {
    return await forkEpisode(stored, lease, fork, { environment, alternatives: 3, signal });
  } finally {
    lease.release();
  }
}

/** The first stored episode that is as wanted. */
async function find(wanted: (one: ReplayableEpisode) => boolean): Promise<ReplayableEpisode> {
  for (const { place } of all) {
    const stored = await open(place);
    if (wanted(stored)) return stored;
  }
  throw new Error('no episode is as wanted');
}

describe('replay', () => {
  test.each(policies)('samples every episode again to the bit, with the $backend decoder', async (by) => {
    const seen = new Map<string, number>();
    for (const { place, group } of all) {
      const stored = await open(place);
      const { equal, differences, sampled, tokens } = await replayed(stored, 3, by.pool);
      expect({ place, equal, differences }).toEqual({ place, equal: true, differences: [] });
      const { episode, sampled: how } = stored;
      expect(sampled).toBe(episode.turns.reduce((sum, { start, end }) => sum + end - start, 0));
      const cuts = how.sampling.topK > 0;
      for (const [i, { id, logprob, alternatives }] of tokens.entries()) {
        expect(alternatives === undefined).toBe(episode.mask[i] === 0);
        if (!alternatives) continue;
        const probabilities = alternatives.slice(0, 3).map((one) => one.logprob);
        expect(probabilities).toEqual(probabilities.toSorted((a, b) => b - a));
        const own = alternatives.find((one) => one.id === id)!;
        // A cut leaves the token a larger part of less.
        if (cuts) expect(own.logprob).toBeLessThanOrEqual(logprob! + 1e-9);
        else expect(own.logprob).toBe(logprob);
      }
      const kinds = {
        'a branch': episode.inherited !== undefined,
        'a beginning that was drawn': episode.mask[0] === 0 && episode.turns[0]!.start > 0,
        'several turns': episode.turns.length > 2,
        'a cut': cuts && episode.kept!.some(({ length }) => length > 0),
        'an evaluation': place.stage.endsWith('.held-out'),
        'a copy': how.stage !== place.stage,
        'another temperature': how.sampling.temperature > 1.1,
        'a second workflow': place.group > 0 && group.grows === undefined,
      };
      for (const [kind, is] of Object.entries(kinds)) seen.set(kind, (seen.get(kind) ?? 0) + (is ? 1 : 0));
    }
    for (const [kind, count] of seen) expect({ kind, some: count > 0 }).toEqual({ kind, some: true });
  });

  test('says where a token is another one than was sampled, and what it was', async () => {
    const stored = await find(
      ({ episode }) => episode.turns.length > 1 && episode.turns[1]!.end - episode.turns[1]!.start > 3,
    );
    const position = stored.episode.turns[1]!.start + 2;
    const episode = structuredClone(stored.episode);
    const before = episode.tokens[position]!;
    episode.tokens[position] = before + 1;
    const { equal, differences } = await replayed({ ...stored, episode });
    expect(equal).toBe(false);
    const [first] = differences.filter(({ kind }) => kind === 'token');
    expect(first).toMatchObject({
      kind: 'token',
      turn: 2,
      position,
      recorded: { id: before + 1 },
      replayed: { id: before, logprob: stored.episode.samplerLogprobs[position] },
    });
    for (const { kind, position: at } of differences)
      if (kind !== 'text') expect(at).toBeGreaterThanOrEqual(position);
  });

  test('says what was recorded of a token that is the same one: its log-prob, and what the policy read', async () => {
    const stored = await find(({ episode }) => episode.turns.length > 1);
    const { start, end } = stored.episode.turns[0]!;
    const episode = structuredClone(stored.episode);
    episode.samplerLogprobs[start]! += 1e-9;
    const { differences } = await replayed({ ...stored, episode });
    expect(differences).toEqual([
      {
        kind: 'logprob',
        turn: 1,
        position: start,
        recorded: episode.samplerLogprobs[start],
        replayed: stored.episode.samplerLogprobs[start],
      },
    ]);
    const other = structuredClone(stored.episode);
    other.turns[0]!.observation!.text += '!';
    const read = await replayed({ ...stored, episode: other });
    expect(read.differences).toEqual([
      { kind: 'text', turn: 1, position: end, what: expect.stringContaining('what came back') as string },
    ]);
  });

  test('refuses a place that there is not', async () => {
    const { place } = all[0]!;
    await expect(open({ ...place, episode: 999 })).rejects.toThrow(/no episode 999: name one from 0 to/);
    await expect(open({ ...place, group: 999 })).rejects.toThrow(/no group 999/);
    await expect(open({ ...place, stage: 'tre' })).rejects.toThrow(/no episodes of a stage "tre"/);
    await expect(open({ ...place, run: 'nobody' })).rejects.toThrow(/no run "nobody"/);
  });
});

describe('a fork', () => {
  const calls = ({ episode }: ReplayableEpisode): number =>
    episode.turns.filter(({ action, observation }) => action.kind === 'call' && !observation?.error).length;
  const of = (environment: string, stage: string) => (one: ReplayableEpisode) =>
    one.task.ref.environment === environment &&
    one.place.stage === stage &&
    calls(one) > 2 &&
    one.episode.turns.length > 3;

  test.each(['house-fold', 'house-replay'])(
    'with the token that was there ends as the episode did, its calls made again: %s',
    async (name) => {
      const stored = await find((one) => of(name, 'tree')(one) && !one.episode.inherited);
      const { episode } = stored;
      for (const turn of [0, 2, episode.turns.length - 1]) {
        const at = episode.turns[turn]!.end - 1;
        const fork = { at, token: episode.tokens[at]!, seed: null };
        const { tokens, status, outcome, stopped, turns } = await forked(stored, fork);
        expect(stopped).toBeNull();
        expect(tokens.map(({ id }) => id)).toEqual(episode.tokens);
        expect(tokens.map(({ logprob }) => logprob)).toEqual(
          episode.samplerLogprobs.map((logprob, i) => (episode.mask[i] === 1 ? logprob : undefined)),
        );
        expect(turns.map(({ action }) => action)).toEqual(episode.turns.map(({ action }) => action));
        expect(status).toEqual(episode.status);
        expect(outcome).toEqual(episode.outcome);
      }
    },
  );

  test('of a branch goes on by its own draws behind what it has of another sample', async () => {
    const stored = await find(
      ({ episode, task }) => task.ref.environment === 'house-replay' && (episode.inherited?.turns ?? 0) > 0,
    );
    const { episode } = stored;
    const at = episode.turns[0]!.end - 1;
    const { tokens, outcome } = await forked(stored, { at, token: episode.tokens[at]!, seed: null });
    expect(tokens.map(({ id }) => id)).toEqual(episode.tokens);
    expect(outcome).toEqual(episode.outcome);
  });

  test('with another token, or other draws, goes another way, and the same way each time', async () => {
    const stored = await find((one) => of('house-replay', 'tree')(one) && !one.episode.inherited);
    const { episode } = stored;
    const { tokens } = await replayed(stored);
    const at = episode.turns[2]!.start + 1;
    const other = tokens[at]!.alternatives!.find(({ id }) => id !== episode.tokens[at])!;
    const fork = { at, token: other.id, seed: null };
    const one = await forked(stored, fork);
    expect(one.tokens.slice(0, at).map(({ id }) => id)).toEqual(episode.tokens.slice(0, at));
    expect(one.tokens[at]).toMatchObject({ id: other.id, logprob: other.logprob });
    expect(['answered', 'ended', 'truncated']).toContain(one.status.kind);
    expect(one.outcome!.kind).toMatch(/scored|truncated/);
    const withoutSeconds = (result: unknown): unknown =>
      JSON.parse(JSON.stringify(result, (key, value: unknown) => (key === 'seconds' ? undefined : value)));
    expect(withoutSeconds(await forked(stored, fork))).toEqual(withoutSeconds(one));

    const drawn = await Promise.all(
      [1, 2, 3, 4, 5, 1].map(async (seed) => {
        const { tokens } = await forked(stored, { at: episode.turns[0]!.start, token: null, seed });
        return tokens.map(({ id }) => id).join(' ');
      }),
    );
    expect(drawn[5]).toBe(drawn[0]);
    expect(new Set(drawn).size).toBeGreaterThan(1);
  });

  test('is refused behind what cannot be had twice, and goes on before it', async () => {
    const pinned = await find(of('house-pin', 'pinned'));
    const { turns } = pinned.episode;
    await expect(forked(pinned, { at: turns.at(-1)!.start, token: null, seed: 1 })).rejects.toThrow(
      /cannot be opened a second time \(pin\)/,
    );
    const { stopped, outcome } = await forked(pinned, { at: turns[0]!.start, token: null, seed: 1 });
    expect(stopped).toBeNull();
    expect(outcome).not.toBeNull();
    await expect(forked(pinned, { at: 100_000, token: null, seed: 1 })).rejects.toThrow(/sampled a token: /);
  });

  test('makes long calls where it is, too', async () => {
    const stored = await find((one) => of('house-replay', 'tree')(one) && !one.episode.inherited);
    const known = environments.get('house-replay')!;
    const tools = known.tools.map((tool) => ({ ...tool, placement: 'long' as const }));
    const long = Object.assign(Object.create(known) as typeof known, { tools });
    const lease = await pool.lease(await checkpointThatSampled(store, stored));
    const { turns, tokens, status } = stored.episode;
    const at = turns[0]!.end - 1;
    const again = await forkEpisode(
      stored,
      lease,
      { at, token: tokens[at]!, seed: null },
      { environment: long, alternatives: 0, signal },
    );
    expect(again.tokens.map(({ id }) => id)).toEqual(tokens);
    expect(again.status).toEqual(status);
    lease.release();
  });

  test('makes no call that must be made once', async () => {
    const stored = await find((one) => of('house-fold', 'tree')(one) && !one.episode.inherited);
    const known = environments.get('house-fold')!;
    const tools = known.tools.map((tool) =>
      tool.name === 'go' ? { ...tool, effect: 'once' as const } : tool,
    );
    const once = Object.assign(Object.create(known) as typeof known, { tools });
    const lease = await pool.lease(await checkpointThatSampled(store, stored));
    const options = { environment: once, alternatives: 0, signal };
    const { turns, tokens } = stored.episode;
    const went = turns.findIndex(({ action }) => action.kind === 'call' && action.call.name === 'go');
    const at = turns[went]!.end - 1;
    const { stopped, outcome } = await forkEpisode(
      stored,
      lease,
      { at, token: tokens[at]!, seed: null },
      options,
    );
    expect([stopped, outcome]).toEqual([expect.stringContaining('go must be called once only'), null]);
    const behind = { at: turns[went + 1]!.start, token: null, seed: 1 };
    await expect(forkEpisode(stored, lease, behind, options)).rejects.toThrow(
      /go in turn \d+ must not be made/,
    );
    lease.release();
  });
});

describe('in a process of its own', () => {
  const environment = () =>
    Object.fromEntries(
      Object.entries(server.environment()).filter((pair) => pair[1] !== undefined),
    ) as Record<string, string>;
  const gradus = (...args: string[]) =>
    promisify(execFile)(
      process.execPath,
      [...OWN_LOADER, path.join(ROOT, 'cli/gradus.ts'), 'replay', ...args],
      {
        env: environment(),
      },
    );
  const place = { run: 'cut', stage: 'rl', step: 1, group: 0, episode: 1 };

  test('the command tells that an episode is the same, and by its exit code that it is not', async () => {
    const { stdout } = await gradus(placeOf(place));
    expect(stdout).toMatch(
      /tokens of \d+ turns? sampled again: every one is the same, with the same log-prob to the bit/,
    );
    expect(stdout).toMatch(
      /turn 1\n +0 {2}".+" +[\d.]+ % \([\d.e-]+ % behind the cut\) +\d+ ".*" [\d.e-]+ %/,
    );

    const { group } = all.find(
      ({ place: { run, stage, step } }) => run === 'cut' && stage === 'rl' && step === 1,
    )!;
    const other = structuredClone(group);
    const { tokens, turns } = other.episodes[1]!;
    tokens[turns[0]!.start]!++;
    await putTrajectories(store, place, { ...other, id: 'group-0900' });
    const changed = gradus(placeOf({ ...place, group: 900 }), '--json', '--top-k', '0');
    const { code, stdout: json } = (await changed.catch((error: unknown) => error)) as {
      code: number;
      stdout: string;
    };
    expect(code).toBe(1);
    const { replay } = JSON.parse(json) as ReplayAnswer;
    expect(replay!.differences[0]).toMatchObject({ kind: 'token', position: turns[0]!.start });

    await expect(gradus('cut/rl/1')).rejects.toMatchObject({
      stderr: expect.stringContaining('RUN/STAGE/STEP') as string,
    });
  });

  test('the command forks, and says how it ended and what that is worth', async () => {
    const stored = await open(place);
    const at = stored.episode.turns[0]!.end - 1;
    const { stdout } = await gradus(placeOf(place), '--fork', `${at}=${stored.episode.tokens[at]}`, '--json');
    const { fork } = JSON.parse(stdout) as ReplayAnswer;
    expect(fork!.tokens.map(({ id }) => id)).toEqual(stored.episode.tokens);
    expect(fork!.outcome).toEqual(stored.episode.outcome);
    const drawn = await gradus(placeOf(place), '--fork', '0', '--seed', '7');
    expect(drawn.stdout).toMatch(
      /forked at 0: nothing of it is stored\n\nturn 1\n[\s\S]+reward [-\d.]+ \(exact-match/,
    );
  });

  test('a page has one at a time, which can be stopped and does not take for ever', async () => {
    const jobs = new ReplayJobs({ env: environment() });
    const request = { place, alternatives: 2, fork: null };
    const job = jobs.start(request);
    expect(jobs.start({ ...request })).toBe(job);
    expect(() => jobs.start({ ...request, alternatives: 3 })).toThrow(/another replay runs/);
    const ended = (one: ReplayJob) =>
      vi.waitFor(() => expect(one.state.kind).not.toBe('running'), { timeout: 120_000, interval: 50 });
    await ended(job);
    expect(job.state).toMatchObject({ kind: 'done', answer: { place, replay: { equal: true } } });
    expect(jobs.of(place)).toEqual([job]);

    const wrong = jobs.start({ ...request, place: { ...place, group: 800 } });
    await ended(wrong);
    expect(wrong.state).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('no group 800') as string,
    });

    const stopped = jobs.start({ ...request, alternatives: 5 });
    jobs.stop(stopped.id);
    expect(stopped.state).toMatchObject({ kind: 'failed', reason: 'it was stopped' });
    expect(jobs.current).toBeNull();
    const impatient = new ReplayJobs({ env: environment(), limitMs: 50 });
    const late = impatient.start(request);
    await ended(late);
    expect(late.state).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('longer than 0.05 s') as string,
    });
    await Promise.all([jobs.close(), impatient.close()]);
  });
});

describe('its page', () => {
  const place = { run: 'cut', stage: 'rl', step: 1, group: 0, episode: 1 };
  const path = `/runs/cut/episodes/rl/1/0/1/replay`;
  let actions: Dashboard;
  let onlyShows: Dashboard;
  beforeAll(async () => {
    const settings = readSettings({ ...server.environment(), TEMPORAL_ADDRESS: '127.0.0.1:1' });
    const at = (actions: boolean) => openDashboard(settings, { actions, temporalUi: null });
    [actions, onlyShows] = await Promise.all([at(true), at(false)]);
  });
  afterAll(() => Promise.all([actions?.close(), onlyShows?.close()]));

  const get = async (url: string, of = actions): Promise<string> =>
    (await fetch(new URL(url, of.url))).text();
  async function post(to: string, form: Record<string, string>, of = actions): Promise<Response> {
    const token = /name="token" value="([^"]+)"/.exec(await get(path, of))?.[1] ?? 'none';
    return fetch(new URL(to, of.url), {
      method: 'POST',
      redirect: 'manual',
      headers: { origin: new URL(of.url).origin, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ token, ...form }),
    });
  }
  /** The page once nothing runs, as a person sees it who looks again. */
  const settled = (url: string): Promise<string> =>
    vi.waitFor(
      async () => {
        const html = await get(url);
        expect(html).not.toContain('Look again');
        return html;
      },
      { timeout: 120_000, interval: 200 },
    );

  test('begins nothing where it only shows, and says what to write in a terminal', async () => {
    const html = await get(path, onlyShows);
    expect(html).not.toContain('<form');
    expect(html).toContain(`replay ${placeOf(place)}`);
    expect((await post(path, { alternatives: '5' }, onlyShows)).status).toBe(403);
  });

  test('replays one at a time, and refuses forks that cannot be', async () => {
    const begun = await post(path, { alternatives: '3' });
    expect(begun.status).toBe(303);
    const running = await get(begun.headers.get('location')!);
    expect(running).toMatch(/running<\/span> for/);
    expect((await post('/runs/cut/episodes/rl/1/0/2/replay', { alternatives: '3' })).status).toBe(409);
    const html = await settled(begun.headers.get('location')!);
    expect(html).toContain('every one is the same, with the same log-prob to the bit');
    for (const form of [
      { at: '1e3', with: '1' },
      { at: '1', with: '', seed: '' },
      { at: '', with: '1' },
    ])
      expect((await post(`${path}/fork`, form)).status).toBe(400);
    const behind = await post(`${path}/fork`, { at: '99999', seed: '1' });
    expect(await settled(behind.headers.get('location')!)).toContain('sampled a token: ');
  });

  test('stops what runs, and the next may begin', async () => {
    const begun = await post(path, { alternatives: '1' });
    const [, job] = /job=(\d+)/.exec(begun.headers.get('location')!)!;
    expect((await post(`${path}/stop`, { job: job! })).status).toBe(303);
    expect(await get(begun.headers.get('location')!)).toContain('it was stopped');
    const other = await post('/runs/cut/episodes/rl/1/0/2/replay', { alternatives: '0' });
    expect(await settled(other.headers.get('location')!)).toContain('every one is the same');
  });

  test.runIf(hasChromium())(
    'replays and forks without scripts and with keys alone, and is within WCAG 2.2 AA',
    async () => {
      const browser = (await launchChromium())!;
      try {
        await withPage(browser, { javaScriptEnabled: false }, async (page) => {
          const settled = (heading: RegExp): Promise<void> =>
            vi.waitFor(
              async () => {
                await page.reload();
                expect(await page.getByRole('heading', { name: heading }).count()).toBe(1);
              },
              { timeout: 120_000, interval: 200 },
            );
          await page.goto(new URL(path, actions.url).href);
          await enter(page, 'Replay');
          await settled(/^The same$/);
          const other = page.locator('td a.chip').first();
          const { searchParams } = new URL((await other.getAttribute('href'))!, actions.url);
          await other.focus();
          await page.keyboard.press('Enter');
          await page.waitForURL(/#fork$/);
          expect(await page.getByLabel('id of the token').inputValue()).toBe(searchParams.get('token'));
          await enter(page, 'Fork');
          await settled(new RegExp(`^Forked at ${searchParams.get('at')}$`));
        });
        await withPage(browser, {}, async (page) => {
          const heard = overhear(page, actions.url);
          await page.goto(new URL(path, actions.url).href);
          expect(await wrongIn(page)).toEqual([]);
          await page.getByRole('button', { name: 'Replay' }).focus();
          await page.keyboard.press('Enter');
          await page.getByRole('heading', { name: 'The same', exact: true }).waitFor({ timeout: 120_000 });
          // What may be begun again is there without a reload.
          await page.getByRole('button', { name: 'Fork' }).waitFor({ timeout: 120_000 });
          expect(await wrongIn(page)).toEqual([]);
          expect(heard).toEqual([]);
        });
      } finally {
        await browser.close();
      }
    },
  );
});

test('a checkpoint that retention has removed is named with what would have kept it', async () => {
  const { place } = all.find(({ place }) => place.stage === 'tree' && place.step === 2)!;
  await applyRetention(store, place.run, { keepLast: 1, keepBest: 0, keepEvery: 0, pinned: [] });
  await expect(replayed(await open(place))).rejects.toMatchObject({
    type: 'no-checkpoint',
    retryable: false,
    message: expect.stringMatching(/retention of trees .*"keepEvery": 1/) as string,
  });
});
