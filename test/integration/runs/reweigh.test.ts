import { beforeAll, expect, test } from 'vitest';
import { METHOD_KINDS } from '../../../core/algorithms/index.ts';
import { parseStepPlace } from '../../../runs/reweigh/reweigh-words.ts';
import { reweighStep } from '../../../runs/reweigh/reweigh.ts';
import type { ReweighedStep } from '../../../runs/reweigh/reweigh.ts';
import { putTrajectories, loadTrajectories, rolloutKeys } from '../../../store/rollout/trajectories.ts';
import type { Episode } from '../../../core/episode/episode.ts';
import { isRewarded } from '../../../core/episode/outcome.ts';
import type { Outcome } from '../../../core/episode/outcome.ts';
import { rolloutsPrefix } from '../../../store/keys.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import type { StoredStep } from '../../../store/training/step-facts.ts';
import { shortNumber } from '../../../svg/charts.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { openPlainRuns, pagesOf } from './plain-runs.ts';
import { tinySpec } from '../../support/tiny-spec.ts';

// One run that takes a step or two by every method, and what its steps would have taught by other rewards.

const { store, train, gradus } = await openPlainRuns();

/** A teacher is a run of its own, and what it teaches has no part in rewards. */
const KINDS = METHOD_KINDS.filter((kind) => kind !== 'opd');
const OF_METHOD: Partial<Record<(typeof METHOD_KINDS)[number], object>> = {
  ppo: { klCoefficient: 0.05 },
  'reinforce++': { baseline: 'none', klCoefficient: 0.05 },
  dapo: { maxRefills: 2 },
  agentq: { alpha: 0.8, margin: 0 },
  vapo: { critic: { pretrainingSteps: 1 } },
  hindsight: { corrections: 2 },
};
const tiny = tinySpec({ maxSteps: 2, groupsPerStep: 4 });
const [warmStart, rl] = tiny.stages;
const nameOf = (kind: string): string => kind.replaceAll('+', 'p');
const stageOf = (name: string, algorithm: object, more: object = {}) => ({
  ...rl,
  name,
  numGenerations: 4,
  algorithm: { minibatch: 16, ...algorithm },
  graduation: { ...rl.graduation, successAtLeast: 0.5, everySteps: 2, tasks: 8 },
  ...more,
});
const spec = {
  ...tiny,
  reward: {
    components: [...tiny.reward.components, { verifier: 'sub-goals', role: 'bonus', weight: 0 }],
    rules: [
      { kind: 'process', verifier: 'sub-goals', by: 'turns', weight: 0.05 },
      { kind: 'linear-length', target: 8, limit: 30, weight: 0.1 },
      { kind: 'confidence', weight: 0.05, gatedBy: 'format' },
    ],
    normalization: 'environment',
  },
  stages: [
    warmStart,
    ...KINDS.map((kind) =>
      stageOf(
        nameOf(kind),
        { kind, ...OF_METHOD[kind] },
        {
          ...(kind === 'dapo' && { numGenerations: 2 }),
          ...(kind === 'agentq' && { numGenerations: 8, collect: { kind: 'tree', roots: 2, branches: 3 } }),
        },
      ),
    ),
    stageOf('moving', { kind: 'reinforce++', baseline: 'moving' }),
    stageOf('stale', { kind: 'grpo', importanceCap: 2 }, { collect: { kind: 'stored', stage: 'ppo' } }),
  ],
};

let places: { stage: string; step: number }[];
beforeAll(async () => {
  await train('methods', spec);
  const steps = await readSteps(store, 'methods');
  places = steps.flatMap(({ stage, stageStep, rollout }) => (rollout ? [{ stage, step: stageStep }] : []));
}, 600_000);

test('the figures of a step are what its stored episodes come to', async () => {
  const run = 'methods';
  const { stdout } = await gradus('metrics', run, '--json');
  const told = stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as StoredStep & { figures: Record<string, number> });
  // The groups of these stages are all of the policy's own samples.
  const plain = ['grpo', 'rloo', 'dapo', 'gigpo', 'ppo'];
  const steps = told.filter(({ stage, rollout }) => plain.includes(stage) && rollout !== null);
  expect(steps.length).toBeGreaterThanOrEqual(plain.length);
  const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
  const solved = (some: readonly Episode[]): Episode[] =>
    some.filter(({ outcome }) => outcome?.kind === 'scored' && outcome.components[0]!.score === 1);
  for (const { stage, stageStep, figures, heldOut } of steps) {
    const episodes = await episodesIn(stage, stageStep);
    const each = (of: (episode: Episode) => number): number => sum(episodes.map(of)) / episodes.length;
    const judged = episodes.flatMap(({ outcome }) => (outcome && isRewarded(outcome) ? [outcome] : []));
    // What was drawn again because it had been failed tells nothing of the arm.
    const first = episodes.filter(({ again }) => !again);
    const sampled = sum(episodes.map(({ mask }) => sum(mask)));
    expect(figures).toMatchObject({
      'reward/mean': expect.closeTo(sum(judged.map(({ reward }) => reward)) / judged.length, 9),
      'success/train': expect.closeTo(solved(first).length / first.length, 9),
      'policy/entropy': expect.closeTo(
        -sum(episodes.map(({ samplerLogprobs }) => sum(samplerLogprobs))) / sampled,
        9,
      ),
      'episodes/tokens': expect.closeTo(sampled / episodes.length, 9),
      'episodes/longest': Math.max(...episodes.map(({ mask }) => sum(mask))),
      'episodes/turns': expect.closeTo(
        each(({ turns }) => turns.length),
        9,
      ),
      'episodes/truncated': expect.closeTo(
        each(({ status }) => Number(status.kind === 'truncated')),
        9,
      ),
      'outcomes/scored': expect.closeTo(
        each(({ outcome }) => Number(outcome?.kind === 'scored')),
        9,
      ),
    });
    // What the parts of rewards add is the reward.
    const parts = Object.entries(figures).filter(([name]) => name.startsWith('contribution/'));
    expect(sum(parts.map(([, value]) => value))).toBeCloseTo(figures['reward/mean']!, 9);
    if (heldOut === null) continue;
    const measured = await episodesIn(`${stage}.held-out`, stageStep);
    expect(figures['success/held-out']).toBeCloseTo(solved(measured).length / measured.length, 9);
  }
  const page = await pagesOf(store)(`/runs/${run}`);
  const all = sum(told.map(({ rollout }) => (rollout?.sampledTokens ?? 0) + (rollout?.otherTokens ?? 0)));
  expect(page.text).toContain(`sampled ${shortNumber(all)} tokens for training`);

  // A greedy sample of each task is what the others are compared with, and no group that does not teach.
  const remax = await pagesOf(store)(`/runs/${run}/steps/remax/1`);
  expect(remax.text).toMatch(/\d of 4 have no contrast/);

  async function episodesIn(stage: string, step: number): Promise<(Episode & { again: boolean })[]> {
    const listed = await store.list(`${rolloutsPrefix(run, stage)}${String(step).padStart(6, '0')}/`);
    const groups = await Promise.all(
      listed.map(async ({ key }) => loadTrajectories(store, (await store.head(key))!)),
    );
    return groups.flatMap(({ tasks, episodes }) =>
      episodes.map((episode) => ({ ...episode, again: tasks[episode.task]!.retried === true })),
    );
  }
});

const by = (place: { stage: string; step: number }, set: Record<string, string> = {}) =>
  reweighStep(store, { run: 'methods', ...place }, new Map(Object.entries(set)));
const unchanged = ({ tasks }: ReweighedStep): void => {
  for (const { deviation, teaches, episodes } of tasks) {
    expect(deviation.after).toBe(deviation.before);
    expect(teaches.after).toBe(teaches.before);
    for (const one of episodes) {
      expect(one.reward.after).toBe(one.reward.before);
      expect(one.advantage.after).toBe(one.advantage.before);
      expect(one.flipped).toBe(0);
    }
  }
};

test('the reward as it is gives the stored rewards and the batch of every method, to the bit', async () => {
  expect(new Set(places.map(({ stage }) => stage))).toEqual(
    new Set([...KINDS.map(nameOf), 'moving', 'stale']),
  );
  for (const place of places) {
    const step = await by(place);
    expect([place, step.reproduced.exactly === 'no-batch' ? { exactly: true } : step.reproduced]).toEqual([
      place,
      { exactly: true },
    ]);
    expect(step.limits).toEqual([]);
    unchanged(step);
  }
}, 600_000);

/** Runs that begin alike: until their first batch nothing of them depends on the reward. */
const brief = briefSpec({ maxSteps: 1 });
const [briefStart, briefRl] = brief.stages;
const rewardedBy = (algorithm: object, reward: object) => ({
  ...brief,
  sampling: { ...brief.sampling, maxTurns: 2 },
  reward,
  // A policy that still loses its way now and then, and is cut.
  stages: [
    { ...briefStart, updatesPerRound: 50 },
    { ...briefRl, algorithm: { minibatch: 16, ...algorithm } },
  ],
});
const BEFORE = {
  components: [
    { verifier: 'exact-match', role: 'outcome', weight: 1 },
    { verifier: 'format', role: 'bonus', weight: 0.2 },
    { verifier: 'lenient', role: 'bonus', weight: 0.2 },
  ],
  ensembles: [{ name: 'lenient', verifiers: ['exact-match', 'tool-shaping'] }],
  rules: [{ kind: 'linear-length', target: 4, limit: 30, weight: 0.2 }],
  truncated: 'train',
};
const AFTER = {
  components: [
    { verifier: 'exact-match', role: 'outcome', weight: 1 },
    { verifier: 'format', role: 'penalty', weight: 0.4, gatedBy: 'exact-match' },
    { verifier: 'lenient', role: 'bonus', weight: 0.1 },
  ],
  ensembles: [
    { name: 'lenient', verifiers: ['exact-match', 'tool-shaping'], by: 'mean-deviation', deviations: 0.5 },
  ],
  rules: [{ kind: 'linear-length', target: 12, limit: 24, weight: 0.3 }],
  truncated: 'mask',
};
const CHANGES = {
  'format.role': 'penalty',
  'format.weight': '0.4',
  'format.gatedBy': 'exact-match',
  'lenient.weight': '0.1',
  'lenient.by': 'mean-deviation',
  'lenient.deviations': '0.5',
  'rule:linear-length.target': '12',
  'rule:linear-length.limit': '24',
  'rule:linear-length.weight': '0.3',
  truncated: 'mask',
};

test.each([{ kind: 'grpo' }, { kind: 'ppo', klCoefficient: 0.05 }])(
  'a step of $kind that is re-weighed teaches what a run with that reward was taught',
  async (algorithm) => {
    const [one, other] = [`${algorithm.kind}-before`, `${algorithm.kind}-after`];
    await train(one, rewardedBy(algorithm, BEFORE));
    await train(other, rewardedBy(algorithm, AFTER));
    const place = { stage: 'rl', step: 1 };
    const changed = await reweighStep(store, { run: one, ...place }, new Map(Object.entries(CHANGES)));
    const lived = await reweighStep(store, { run: other, ...place }, new Map());
    expect([changed.reproduced, lived.reproduced]).toEqual([{ exactly: true }, { exactly: true }]);
    expect(changed.tasks.map(({ deviation, teaches }) => [deviation.after, teaches.after])).toEqual(
      lived.tasks.map(({ deviation, teaches }) => [deviation.before, teaches.before]),
    );
    const all = ({ tasks }: ReweighedStep) => tasks.flatMap(({ episodes }) => episodes);
    expect(all(changed).map(({ reward, advantage }) => [reward.after, advantage.after])).toEqual(
      all(lived).map(({ reward, advantage }) => [reward.before, advantage.before]),
    );
    // It is another lesson, and some of what was cut is part of it no more.
    expect(changed.totals.otherRewards).toBeGreaterThan(0);
    expect(changed.totals.stop).toBeGreaterThan(0);
    expect(changed.tasks.map(({ deviation }) => deviation.after)).not.toEqual(
      changed.tasks.map(({ deviation }) => deviation.before),
    );
  },
  600_000,
);

test('what was masked has no scores of a critic: it is left out, and said', async () => {
  const place = { run: 'ppo-after', stage: 'rl', step: 1 };
  const { limits, tasks } = await reweighStep(store, place, new Map([['truncated', 'train']]));
  expect(limits.join(' ')).toMatch(/would be trained on and (was|were) never scored/);
  const cut = tasks.flatMap(({ episodes }) => episodes.filter(({ advantage }) => advantage.before === null));
  expect(cut.length).toBeGreaterThan(0);
  for (const { advantage } of cut) expect(advantage.after).toBeNull();
});

test('an object that was replaced is said to give another batch', async () => {
  const place = { run: 'grpo-after', stage: 'rl', step: 1 };
  const before = await reweighStep(store, place, new Map());
  const [group] = await groupsOf('grpo-after');
  const { ref, value } = group!;
  await store.remove([ref.key]);
  // Twice what decides, in the reward of one episode alone.
  const episodes = value.episodes.map((episode, i) =>
    i === 0 ? { ...episode, outcome: { ...episode.outcome!, reward: 2 } as Outcome } : episode,
  );
  await putTrajectories(store, place, { ...value, episodes });
  const after = await reweighStep(store, place, new Map());
  expect(before.reproduced).toEqual({ exactly: true });
  expect(after.reproduced).toEqual({
    exactly: false,
    why: '1 stored rewards are not what the spec makes of their components',
  });
  await store.remove([ref.key]);
  await putTrajectories(store, place, value);
  expect((await reweighStep(store, place, new Map())).reproduced).toEqual({ exactly: true });
});

test('the terminal lists what can be set, shows what flips, and says what is no step', async () => {
  const fields = await gradus('reweigh', 'grpo-before/rl/1');
  expect(fields.stdout).toContain('gives every stored reward and the batch of the step, to the bit');
  expect(fields.stdout).toContain('rule:linear-length.target');
  const set = Object.entries(CHANGES).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
  const { code, stdout } = await gradus('reweigh', 'grpo-before/rl/1', ...set);
  expect(code).toBe(0);
  expect(stdout).toContain('format.weight: 0.2 → 0.4');
  expect(stdout).toMatch(/\d+ of 16 rewards differ/);
  const { stdout: json } = await gradus('reweigh', 'grpo-before/rl/1', ...set, '--json');
  const { totals, tasks } = JSON.parse(json) as ReweighedStep;
  expect(totals.episodes).toBe(16);
  expect(tasks.flatMap(({ episodes }) => episodes)).toHaveLength(16);
  const refused = await gradus('reweigh', 'grpo-before/rl');
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('write RUN/STAGE/STEP')]);
}, 600_000);

test('a page has the form, what flips and which tasks begin or stop to teach', async () => {
  const ask = pagesOf(store);
  const at = '/runs/grpo-before/reweigh/rl/1';
  const asItIs = await ask(at);
  expect(asItIs.status).toBe(200);
  expect(asItIs.text).toContain('gives every stored reward and the batch of the step, to the bit');
  expect(asItIs.text).toContain('Change a field and compute');
  const { text } = await ask(`${at}?${new URLSearchParams(CHANGES).toString()}`);
  expect(text).toContain('rule:linear-length.target: 4 → 12');
  expect(text).toMatch(/\d+ of 16 rewards differ/);
  expect(text).toContain('Tasks whose rewards or advantages differ');
  expect(await ask(`${at}?fromat.weight=1`)).toMatchObject({
    status: 400,
    text: expect.stringContaining('did you mean "format.weight"?'),
  });
  expect((await ask('/runs/grpo-before/reweigh/lr/1')).status).toBe(404);
});

test.each([
  ['grpo-before/lr/1', 'has no stage "lr" that is rewarded; did you mean "rl"?'],
  ['grpo-before/warm-start/1', 'imitates demonstrations'],
  ['grpo-before/rl/9', 'has no episodes in this store'],
  ['nobody/rl/1', 'there is no run "nobody"'],
])('%s is no step that was rewarded, and why is said', async (place, why) => {
  await expect(reweighStep(store, parseStepPlace(place), new Map())).rejects.toThrow(why);
});

async function groupsOf(run: string) {
  const keys = await rolloutKeys(store, run, 'rl');
  return Promise.all(
    keys.map(async (key) => {
      const ref = (await store.head(key))!;
      return { ref, value: await loadTrajectories(store, ref) };
    }),
  );
}
