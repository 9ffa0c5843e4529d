import { beforeAll, expect, test } from 'vitest';
import type { RolloutGroup } from '../../../core/episode/episode.ts';
import { askedOfAll, commonTasks, compareRuns } from '../../../runs/comparison/compare.ts';
import { divergenceOf } from '../../../runs/comparison/divergence.ts';
import { divergenceText } from '../../../runs/comparison/divergence-words.ts';
import { batchKey, rolloutKey } from '../../../store/keys.ts';
import { loadBatch, putBatch } from '../../../store/training/batches.ts';
import { putTrajectories, loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { openPlainRuns, pagesOf } from './plain-runs.ts';

// Runs that part, and runs that do not: of equal specs, of other seeds, of rewards alone, one that died and was begun
// again, and one of whose tokens was replaced.

const { store, train, gradus } = await openPlainRuns();
const brief = briefSpec();
const [warmStart, { algorithm, ...stage }] = brief.stages;
// Without a division every reward that is another one makes another advantage.
const rl = { ...stage, algorithm: { ...algorithm, scaleRewards: 'none' } };
const spec = { ...brief, stages: [warmStart, rl], retention: { keepLast: 10 } };
const [outcome, format, ...others] = spec.reward.components;
const OTHERWISE = {
  'other-seed': { ...spec, seed: 6 },
  'other-reward': { ...spec, reward: { components: [outcome, { ...format, weight: 0.1 }, ...others] } },
  'other-rate': { ...spec, stages: [warmStart, { ...rl, optimizer: { learningRate: 1e-4 } }] },
  'other-look': {
    ...spec,
    stages: [warmStart, { ...rl, graduation: { ...rl.graduation, tasks: 12 } }],
  },
  'other-lessons': { ...spec, stages: [{ ...warmStart, updatesPerRound: 90 }, rl] },
  shorter: { ...spec, stages: [warmStart, { ...rl, maxSteps: 1 }] },
};

beforeAll(async () => {
  await train('one', spec);
  await train('twin', spec);
  for (const [run, otherwise] of Object.entries(OTHERWISE)) await train(run, otherwise);
  let steps = 0;
  const dies = train('died', spec, (learner) => ({
    ...learner,
    step: (...args: Parameters<typeof learner.step>) => {
      if (++steps === 3) throw new Error('the machine was lost');
      return learner.step(...args);
    },
  }));
  await expect(dies).rejects.toThrow('the machine was lost');
  await train('died', spec);
}, 600_000);

const from = (other: string, episodes = false) => divergenceOf(store, ['one', other], { episodes });

test.each(['twin', 'died'])('a run that repeats another one does not part from it: %s', async (other) => {
  const facts = await from(other);
  expect(facts).toMatchObject({
    spec: [],
    common: 3,
    further: [0, 0],
    facts: null,
    parting: null,
    clocks: true,
  });
  expect(divergenceText(facts)).toEqual([
    `one and ${other} do not part in the 3 steps that both have: all facts and the weights are the same.`,
    'They differ in clocks only.',
  ]);
  expect((await from(other, true)).parting).toBeNull();
});

test('runs of other seeds part before their first step, and only the seed is another one', async () => {
  const { spec: differences, parting } = await from('other-seed');
  expect(differences).toEqual([{ path: 'seed', values: ['5', '6'] }]);
  expect(parting).toMatchObject({ at: null, what: 'begin' });
});

test('runs of another reward sample alike until their first batch', async () => {
  const found = await from('other-reward');
  expect(found.spec).toEqual([{ path: 'reward.components[format].weight', values: ['0.2', '0.1'] }]);
  const { at, what, group, episode, counts, batch } = found.parting!;
  expect({ at, what }).toEqual({ at: { stage: 'rl', stageStep: 1, step: 2 }, what: 'batch' });
  expect(group).toMatch(/^group-\d{4}$/);
  expect(episode!.difference).toMatchObject({ token: null, logprob: null, conduct: false, verdict: true });
  const [was, is] = episode!.difference.rewards;
  expect(was! - is!).toBeCloseTo(0.1, 12);
  expect(counts).toMatchObject({ groups: 4, otherTokens: 0, otherLogprobs: 0 });
  expect(counts!.otherVerdicts).toBeGreaterThan(0);
  expect(batch).toMatch(/^advantages of sequence \d+, token \d+: /);
  // Before it something was measured otherwise, and nothing followed from that.
  expect(found.facts!.at.stage).toBe('warm-start');
  expect(divergenceText(found)[0]).toBe(
    'one and other-reward part at step 2 (rl/1): its episodes are sampled alike, and another batch is made of them.',
  );
});

test('runs of other demonstrations part in a supervised step, for which nothing is sampled', async () => {
  const found = await from('other-lessons');
  expect(found.parting).toMatchObject({
    at: { stage: 'warm-start', stageStep: 1, step: 1 },
    what: 'demonstrations',
    environments: null,
    counts: null,
  });
  expect(divergenceText(found).join(' ')).not.toContain('sampled alike');
});

test('runs of another learning rate part where the same batch leads to other weights', async () => {
  const { parting } = await from('other-rate');
  expect(parting).toMatchObject({ at: { stage: 'rl', stageStep: 1, step: 2 }, what: 'learner', batch: null });
  expect(parting!.counts).toEqual({
    groups: 4,
    other: 0,
    otherTokens: 0,
    otherLogprobs: 0,
    otherVerdicts: 0,
  });
});

test('a run that ends earlier does not part as far as it goes, but for what its limits are', async () => {
  const found = await from('shorter');
  expect(found).toMatchObject({ common: 2, further: [1, 0], parting: null });
  // The last step of a stage is measured.
  expect(found.facts!.at).toEqual({ stage: 'rl', stageStep: 1, step: 2 });
  expect(found.facts!.differences.map(({ path }) => path)).toContain('maxSteps');
});

test('a run whose batches do not say how stale they are does not part from one whose batches do', async () => {
  await train('unmarked', spec, (learner) => ({
    ...learner,
    step: async (...args: Parameters<typeof learner.step>) => {
      const { state, metrics } = await learner.step(...args);
      return {
        state,
        metrics: { ...metrics, logprobGapByStaleness: [{ staleness: 0, tokens: 1, mean: 0 }] },
      };
    },
  }));
  const key = batchKey('unmarked', 'rl', 1);
  const batch = await loadBatch(store, (await store.head(key))!);
  const marked = (staleness: Float32Array, tokens = batch.tokens) =>
    store.remove([key]).then(() => putBatch(store, key, { ...batch, tokens, sequences: { staleness } }));
  const ages = new Float32Array(batch.offsets.length - 1);
  await marked(ages);
  const found = await from('unmarked');
  expect(found.facts!.differences.map(({ path }) => path).join()).toContain('logprobGapByStaleness');
  expect(found.parting).toBeNull();
  // Whatever else is not the same is found.
  await marked(ages, batch.tokens.with(0, batch.tokens[0]! + 1));
  expect((await from('unmarked')).parting).toMatchObject({
    what: 'batch',
    batch: expect.stringContaining('tokens of sequence 1') as string,
  });
});

test('runs that are only measured on other tasks do not part', async () => {
  const found = await from('other-look');
  expect(found.parting).toBeNull();
  expect(found.facts!.differences.map(({ path }) => path).join()).toContain('heldOut');
});

async function replace(
  step: number,
  group: number,
  change: (group: RolloutGroup) => RolloutGroup,
): Promise<void> {
  const key = rolloutKey('twin', 'rl', step, `group-000${group}`);
  const value = await loadTrajectories(store, (await store.head(key))!);
  await store.remove([key]);
  await putTrajectories(store, { run: 'twin', stage: 'rl', step }, change(value));
}

test('one token that was replaced is found where all episodes are compared, and a log-prob before it', async () => {
  const changed = (list: readonly number[], at: number, by: number): number[] =>
    list.map((value, i) => (i === at ? value + by : value));
  await replace(2, 1, (group) => ({
    ...group,
    episodes: group.episodes.map((episode, i) =>
      i === 2
        ? {
            ...episode,
            samplerLogprobs: changed(episode.samplerLogprobs, 1, 2 ** -40),
            tokens: changed(episode.tokens, 3, 1),
          }
        : episode,
    ),
  }));
  // What steps have left says nothing of it.
  expect((await from('twin')).parting).toBeNull();
  const found = await from('twin', true);
  expect(found.parting).toMatchObject({
    at: { stage: 'rl', stageStep: 2, step: 3 },
    what: 'sampled',
    group: 'group-0001',
    episode: { index: 2, difference: { token: { at: 3 }, logprob: { at: 1 } } },
    counts: { groups: 4, other: 1, otherTokens: 1, otherLogprobs: 0 },
  });
  const { token, logprob } = found.parting!.episode!.difference;
  expect(token!.values[1]! - token!.values[0]!).toBe(1);
  expect(logprob!.values[1]).not.toBe(logprob!.values[0]);

  // An earlier step comes first, also where nothing but the last bit of a log-prob is another one.
  await replace(1, 3, (group) => ({
    ...group,
    episodes: group.episodes.map((episode, i) =>
      i === 0 ? { ...episode, samplerLogprobs: changed(episode.samplerLogprobs, 0, 2 ** -45) } : episode,
    ),
  }));
  expect((await from('twin', true)).parting).toMatchObject({
    at: { stageStep: 1 },
    group: 'group-0003',
    episode: { index: 0, difference: { token: null, logprob: { at: 0 }, conduct: false } },
    counts: { other: 1, otherTokens: 0, otherLogprobs: 1 },
  });
});

test('runs are compared by their curves, what they were measured by, and the tasks that all were asked', async () => {
  const runs = ['one', 'other-reward', 'shorter'];
  const compared = await compareRuns(store, runs, 'tokens');
  expect(compared.runs.map(({ run, steps }) => [run, steps])).toEqual([
    ['one', 3],
    ['other-reward', 3],
    ['shorter', 2],
  ]);
  expect(compared.spec!.map(({ path, values }) => [path, values])).toEqual([
    ['reward.components[format].weight', ['0.2', '0.1', '0.2']],
    ['stages[rl].maxSteps', ['2', '2', '1']],
  ]);
  const [curve] = compared.figures.get('success/held-out')!;
  const xs = curve!.points.map(([x]) => x);
  // A warm start samples nothing to learn from.
  expect(xs[0]).toBe(0);
  expect(xs).toEqual(xs.toSorted((a, b) => a - b));
  expect(compared.runs[0]!.tokens).toBe(xs.at(-1));
  const [level] = compared.heldOut;
  expect(level).toMatchObject({ arm: { environment: 'calculator', level: 1 } });
  expect(level!.of.map((one) => one?.step)).toEqual([3, 3, 2]);
  for (const one of level!.of) expect(one!.trials).toBe(8);

  const places = await askedOfAll(store, runs);
  expect(places[0]).toEqual({ stage: 'after', step: 0 });
  expect(places).toContainEqual({ stage: 'rl', step: 1 });
  expect(places).not.toContainEqual({ stage: 'rl', step: 2 });
  const report = await commonTasks(store, ['one', 'other-reward'], places[0]!);
  expect(report.tasks).toHaveLength(8);
  expect(new Set(report.tasks.map(({ ref }) => ref.split))).toEqual(new Set(['test']));
  const { both, first, second, neither } = report.solved!;
  expect(both + first + second + neither).toBe(8);
  expect(both + first).toBe(report.success[0]!.successes);
  // Samples of one task are not independent of each other.
  expect(report.success[0]!.samples).toBe(1);
  const sampled = await commonTasks(store, ['one', 'twin'], { stage: 'rl', step: 1 });
  expect(sampled.success[0]).toMatchObject({ samples: 4, trials: 4 * sampled.tasks.length });
  expect(both + second).toBe(report.success[1]!.successes);
  // The samples of a step's tasks, by either run.
  const step = await commonTasks(store, runs, { stage: 'rl', step: 1 });
  expect(step.tasks).toHaveLength(4);
  expect(step.tasks.map(({ of }) => of.map((some) => some.length))).toEqual(step.tasks.map(() => [4, 4, 4]));
  expect(step.solved).toBeNull();

  await expect(compareRuns(store, ['one'], 'step')).rejects.toThrow('name two to 4 different runs');
  await expect(compareRuns(store, ['one', 'one'], 'step')).rejects.toThrow('different runs');
  await expect(compareRuns(store, ['one', 'twins'], 'step')).rejects.toThrow('did you mean "twin"?');
});

test('the terminal says what differs, what came of it, and where they part', async () => {
  const { code, stdout } = await gradus('compare', 'one', 'other-reward', 'died');
  expect(code).toBe(0);
  expect(stdout).toContain('reward.components[format].weight');
  expect(stdout).toContain('one and other-reward part at step 2 (rl/1)');
  expect(stdout).toContain('one and died do not part in the 3 steps');
  const { stdout: json } = await gradus('compare', 'one', 'other-seed', '--json');
  expect(JSON.parse(json)).toMatchObject({
    spec: [{ path: 'seed', values: ['5', '6'] }],
    divergences: [{ parting: { what: 'begin' } }],
  });
}, 600_000);

test('a page of two runs has all of it, with links to where they part and to both episodes of a task', async () => {
  const ask = pagesOf(store);
  const { status, text } = await ask('/compare?runs=one,other-reward&by=tokens&at=rl/1&tasks=all');
  expect(status).toBe(200);
  expect(text).toContain('one and other-reward part at step 2 (rl/1)');
  expect(text).toContain('reward.components[format].weight 0.2 0.1');
  expect(text).toContain('Tasks of rl/1 that all were asked 4 tasks.');
  expect(text).toContain('By the tokens sampled to learn from');
  expect(text).toMatch(/Held-out success .* one \d.* other-reward \d/);
  // As forms send them, and three.
  expect((await ask('/compare?run=one&run=died&run=shorter&run=&by=time&figures=all')).text).toContain(
    'one and died do not part in the 3 steps that both have',
  );
  // Who comes from a run is asked for another one.
  expect(await ask('/compare?runs=one')).toMatchObject({
    status: 200,
    text: expect.stringContaining('Choose two to four runs'),
  });
  for (const [path, refused, why] of [
    ['/compare?runs=one,one', 400, 'different runs'],
    ['/compare?runs=one,two', 404, 'there is no run "two"'],
    ['/compare?runs=one,twin&by=colour', 400, 'by is one of step, tokens, time'],
    ['/compare?runs=one,twin&at=rl', 400, 'at is STAGE/STEP'],
    ['/compare?runs=one,twin&at=../1', 400, 'cannot be part of an object key'],
  ] as const)
    expect(await ask(path)).toMatchObject({ status: refused, text: expect.stringContaining(why) });
});
