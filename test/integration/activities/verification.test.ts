import { expect, test } from 'vitest';
import { pages, parts } from '../../../activities/rollout/trajectory-parts.ts';
import { verifyAll } from '../../../activities/verification/verify-episodes.ts';
import { createVerification } from '../../../activities/verification/verifiers.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import type { Episode, EpisodeStatus, RolloutGroup } from '../../../core/episode/episode.ts';
import type { Split } from '../../../core/refs.ts';
import type { RewardSpec } from '../../../core/schema/reward.ts';
import { failedTasksOf } from '../../../core/training/tasks-again.ts';
import { defineEnvironment } from '../../../environments/contract/environment.ts';
import type { Candidate, Verdict, Verifier } from '../../../environments/contract/environment.ts';
import { exactMatch } from '../../../environments/verifiers/exact-match.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { groupRequest } from '../../support/group-request.ts';
import { openTestStore } from '../../support/test-store.ts';

const { store } = await openTestStore();

const signal = new AbortController().signal;
const right: EpisodeStatus = { kind: 'answered', answer: '42' };
const wrong: EpisodeStatus = { kind: 'answered', answer: '41' };
const cut: EpisodeStatus = { kind: 'truncated', limit: 'tokens' };
const broken: EpisodeStatus = { kind: 'failed', boundary: 'infra', reason: 'the library is closed' };
const atTool: EpisodeStatus = { kind: 'failed', boundary: 'tool', reason: 'the page tore' };

function verifierThat(verify: (candidate: Candidate) => unknown, name = 'style'): Verifier {
  return {
    name,
    version: '3',
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    // A verifier written in JavaScript says what it likes.
    verify: (candidate) => verify(candidate) as Verdict | Promise<Verdict>,
  };
}

const reward: RewardSpec = {
  components: [
    { verifier: 'exact-match', role: 'outcome', weight: 1, gatedBy: null },
    { verifier: 'style', role: 'bonus', weight: 0.5, gatedBy: null },
  ],
  truncated: 'train',
};

let runs = 0;

/** One group of so many episodes of each task, verified in a run of its own. */
async function verify(
  tasks: EpisodeStatus[][],
  options: {
    verifiers?: Verifier[];
    reward?: RewardSpec;
    split?: Split;
    followed?: Episode[];
    signal?: AbortSignal;
  } = {},
) {
  const run = `run-${++runs}`;
  const refs = tasks.map((_, index) => ({
    environment: 'library',
    split: options.split ?? ('train' as const),
    level: 1 + (index % 2),
    index,
  }));
  const group: RolloutGroup = {
    id: 'group-0000',
    weights: 'w',
    temperature: 1,
    tasks: refs.map((ref) => ({ ref, prompt: 'p', promptTokens: [1, 2] })),
    episodes: tasks.flatMap((each, task) => each.map((status, sample) => episode(status, task, sample))),
  };
  const request = groupRequest(run, refs, { samples: 4, reward: options.reward ?? reward });
  const environment = defineEnvironment({
    name: 'library',
    levels: [1, 2],
    tools: [],
    verifiers: options.verifiers ?? [exactMatch(), verifierThat(() => ({ kind: 'score', score: 0.5 }))],
    task: (ref) => ({ ref, prompt: 'p', answer: '42' }),
    demonstrate: () => ({ turns: [], weight: 1 }),
    taskCount: () => Infinity,
  });
  const part = (await store.putIfAbsent(`runs/${run}/parts/start.json`, parts, group)).ref;
  const followed = await Promise.all(
    (options.followed ?? []).map(async (one, i) => {
      const page = [{ task: group.tasks[one.task]!, episode: one }];
      return (await store.putIfAbsent(`runs/${run}/parts/end-${i}.json`, pages, page)).ref;
    }),
  );
  const verification = createVerification({ store, environments: inThisProcess([environment]) });
  const result = await verification.verifyGroup({ group: request, part, followed }, options.signal ?? signal);
  const kept = await loadTrajectories(store, result.trajectories!);
  return { result, kept, outcomes: kept.episodes.map(({ outcome }) => outcome!) };
}

/** Two sampled tokens and an observation. */
function episode(status: EpisodeStatus, task: number, sample: number): Episode {
  return {
    task,
    sample,
    tokens: [5, 6, 7],
    mask: [1, 1, 0],
    samplerLogprobs: [-0.1, -0.2, 0],
    turns: [{ start: 0, end: 2, text: 'x', action: { kind: 'answer', answer: 'x' } }],
    status,
  };
}

test('rewards are kept with every component, its version and its evidence', async () => {
  const { result, outcomes, kept } = await verify([[right, wrong]]);
  expect(outcomes[0]).toEqual({
    kind: 'scored',
    reward: 1.25,
    components: [
      { verifier: 'exact-match', version: '4', score: 1, contribution: 1, evidence: '42 for 42' },
      { verifier: 'style', version: '3', score: 0.5, contribution: 0.25 },
    ],
  });
  expect(outcomes[1]).toMatchObject({ kind: 'scored', reward: 0.25 });
  expect(result).toMatchObject({ rewardSum: 1.5, rewardCount: 2, sampledTokens: 4, turns: 2 });
  expect(result.sampledLogprob).toBeCloseTo(-0.6, 12);
  expect(kept.episodes[0]).toMatchObject({
    tokens: [5, 6, 7],
    mask: [1, 1, 0],
    samplerLogprobs: [-0.1, -0.2, 0],
  });
});

test.each<[string, (candidate: Candidate) => unknown, string]>([
  [
    'throws',
    () => {
      throw new Error('division by zero');
    },
    'threw: division by zero',
  ],
  [
    'rejects',
    async () => {
      throw new Error('no connection');
    },
    'threw: no connection',
  ],
  ['abstains', () => ({ kind: 'abstain', reason: 'too long to judge' }), 'too long to judge'],
  ['says NaN', () => ({ kind: 'score', score: Number.NaN }), 'said NaN'],
  ['says 1.5', () => ({ kind: 'score', score: 1.5 }), 'said 1.5'],
  ['says nothing', () => undefined, 'gave undefined, which is no verdict'],
  ['says text', () => ({ kind: 'score', score: '0.5' }), 'said "0.5", which is no score'],
  ['says true', () => ({ kind: 'score', score: true }), 'said true, which is no score'],
  ['says a list', () => ({ kind: 'score', score: [1] }), 'said [1], which is no score'],
  ['gives evidence that is no text', () => ({ kind: 'score', score: 1, evidence: 7 }), 'evidence: '],
])('a verifier that %s takes no part, and says why; the others count on', async (_, says, evidence) => {
  const { result, outcomes } = await verify([[right]], { verifiers: [exactMatch(), verifierThat(says)] });
  expect(outcomes[0]).toMatchObject({
    kind: 'scored',
    reward: 1,
    components: [
      { score: 1 },
      {
        verifier: 'style',
        score: null,
        contribution: 0,
        evidence: expect.stringContaining(evidence) as string,
      },
    ],
  });
  expect(result.arms).toEqual([{ arm: { environment: 'library', level: 1 }, successes: 1, trials: 1 }]);
});

test('an outcome verifier that throws makes the episode abstain; it is neither a zero nor a trial', async () => {
  const sometimes = verifierThat(({ answer }) => {
    if (answer === '41') throw new Error('out of memory');
    return { kind: 'score', score: 1 };
  }, 'exact-match');
  const { result, outcomes } = await verify([[right, wrong, right, wrong]], {
    verifiers: [sometimes, verifierThat(() => ({ kind: 'score', score: 0 }))],
  });
  expect(outcomes[1]).toEqual({ kind: 'abstained', reason: 'threw: out of memory' });
  expect(result.outcomes).toMatchObject({ scored: 2, abstained: 2 });
  expect(result).toMatchObject({ rewardSum: 2, rewardCount: 2 });
  expect(result.arms).toMatchObject([{ successes: 2, trials: 2 }]);
  expect(failedTasksOf(result)).toEqual([]);
});

test('episodes that failed by infrastructure are counted, and are in no tally', async () => {
  const asked: string[] = [];
  const style = verifierThat(({ episode }) => (asked.push(episode.status.kind), { kind: 'score', score: 1 }));
  const { result, outcomes } = await verify([[right, broken, broken, wrong]], {
    verifiers: [exactMatch(), style],
  });
  expect(outcomes[1]).toEqual({ kind: 'failed', boundary: 'infra', reason: 'the library is closed' });
  expect(result.outcomes).toMatchObject({ scored: 2, failed: 2 });
  expect(result.arms).toMatchObject([{ successes: 1, trials: 2 }]);
  expect(result.rewardCount).toBe(2);
  // Their tokens were sampled all the same.
  expect(result.sampledTokens).toBe(8);
  expect(asked).toEqual(['answered', 'answered']);
});

test('an episode whose call made its tool fail has no reward, and is a trial without success', async () => {
  const { result, outcomes } = await verify([[right, atTool, atTool, wrong]]);
  expect(outcomes[1]).toEqual({ kind: 'failed', boundary: 'tool', reason: 'the page tore' });
  expect(result.outcomes).toMatchObject({ scored: 2, failed: 2 });
  expect(result.arms).toMatchObject([{ successes: 1, trials: 4, toolFailures: 2 }]);
  expect(result.rewardCount).toBe(2);
});

test('a group that failed altogether has no trials and no failed task', async () => {
  const { result } = await verify([[broken, broken]]);
  expect(result).toMatchObject({ arms: [], rewardSum: 0, rewardCount: 0 });
  expect(result).not.toHaveProperty('tried');
});

test('a truncated episode is a trial without success; its reward counts as the spec says', async () => {
  const { result, outcomes } = await verify([[right, cut]]);
  expect(outcomes[1]).toMatchObject({ kind: 'truncated', limit: 'tokens', reward: 0.25 });
  expect(result).toMatchObject({ rewardCount: 2, arms: [{ successes: 1, trials: 2 }] });
  const masked = await verify([[right, cut]], { reward: { ...reward, truncated: 'mask' } });
  expect(masked.result).toMatchObject({
    rewardCount: 1,
    rewardSum: 1.25,
    arms: [{ successes: 1, trials: 2 }],
  });
});

test('train tasks that most samples failed come back to be tried again, tasks of an evaluation never', async () => {
  const tasks = [
    [wrong, wrong, right],
    [right, wrong],
    [broken, wrong],
    [broken, broken],
  ];
  const { result } = await verify(tasks);
  expect(failedTasksOf(result).map(({ index }) => index)).toEqual([0, 2]);
  expect(result.arms.map(({ arm, successes, trials }) => [arm.level, successes, trials])).toEqual([
    [1, 1, 4],
    [2, 1, 2],
  ]);
  expect((await verify(tasks, { split: 'heldout' })).result).not.toHaveProperty('tried');
});

test('an episode that waited for a long call is judged as it ended', async () => {
  const calling: EpisodeStatus = { kind: 'calling', call: { name: 'search', arguments: {} } };
  const { outcomes, kept } = await verify([[right, calling]], {
    followed: [{ ...episode(wrong, 0, 1), tokens: [5, 6, 8] }],
  });
  expect(outcomes.map(({ kind }) => kind)).toEqual(['scored', 'scored']);
  expect(kept.episodes).toHaveLength(2);
  expect(kept.episodes[1]).toMatchObject({ tokens: [5, 6, 8], status: wrong });
});

test('another attempt gives what the first one kept', async () => {
  let asked = 0;
  const moody = verifierThat(() => ({ kind: 'score', score: asked++ === 0 ? 1 : 0 }));
  const before = runs;
  const first = await verify([[right]], { verifiers: [exactMatch(), moody] });
  runs = before;
  const second = await verify([[right]], { verifiers: [exactMatch(), moody] });
  expect(second.result.trajectories).toEqual(first.result.trajectories);
  expect(second.kept).toEqual(first.kept);
});

test('a verification that is cancelled ends with the cancellation, not with abstentions', async () => {
  const controller = new AbortController();
  const reason = new Error('cancelled');
  const cancelling = verifierThat(() => {
    controller.abort(reason);
    throw new Error('socket closed');
  });
  await expect(
    verify([[right]], { verifiers: [exactMatch(), cancelling], signal: controller.signal }),
  ).rejects.toBe(reason);
});

test('rules speak of the samples of a task side by side, and are kept with what they added', async () => {
  const other: EpisodeStatus = { kind: 'answered', answer: '43' };
  const ruled: RewardSpec = {
    ...reward,
    rules: [
      { kind: 'agreement', by: 'majority', weight: 0.5, gatedBy: null },
      { kind: 'diversity', of: 'answer', by: 'count', weight: 0.3, gatedBy: null },
    ],
  };
  const same: EpisodeStatus = { kind: 'answered', answer: '42.0' };
  // Of the second task nobody agrees, and of the first the broken one has no voice.
  const tasks = [
    [right, broken, wrong, same],
    [right, other, wrong],
  ];
  const { outcomes } = await verify(tasks, { reward: ruled });
  const said = outcomes.map((outcome) =>
    outcome.kind === 'scored'
      ? outcome.components.slice(2).map(({ score, contribution }) => [score, contribution])
      : outcome.kind,
  );
  const half = 1 / Math.sqrt(2);
  expect(said).toEqual([
    [
      [1, 0.5],
      [half, 0.3 * half],
    ],
    'failed',
    [
      [0, 0],
      [1, 0.3],
    ],
    [
      [1, 0.5],
      [half, 0.3 * half],
    ],
    [
      [null, 0],
      [1, 0.3],
    ],
    [
      [null, 0],
      [1, 0.3],
    ],
    [
      [null, 0],
      [1, 0.3],
    ],
  ]);
  expect(outcomes[0]).toMatchObject({
    reward: 1.25 + 0.5 + 0.3 * half,
    components: [{}, {}, { verifier: 'rule:agreement', evidence: '2 of 3 samples answer so' }, {}],
  });
  // What answers come down to is for the rules alone.
  expect(JSON.stringify(outcomes)).not.toContain('canonical');
  const heldOut = await verify(tasks, { reward: ruled, split: 'heldout' });
  for (const outcome of heldOut.outcomes) {
    if (outcome.kind === 'scored') expect(outcome.components).toHaveLength(2);
  }
});

test('an episode that a higher tier judges anew, alone, is not paid for being unlike all others', async () => {
  const ladder: RewardSpec = {
    components: [{ verifier: 'ladder', role: 'outcome', weight: 1, gatedBy: null }],
    rules: [
      { kind: 'diversity', of: 'answer', by: 'count', weight: 0.5, gatedBy: null },
      { kind: 'linear-length', target: 1, limit: 3, weight: 0.5, gatedBy: null },
    ],
    ladder: { verifier: 'exact-match', passAtLeast: 1 },
    truncated: 'train',
  };
  const ref = { environment: 'library', split: 'train' as const, level: 1, index: 0 };
  const escalated = { verifier: 'ladder', version: 'dft@1', score: 0.8, passed: true };
  const environments = inThisProcess([
    defineEnvironment({
      name: 'library',
      levels: [1],
      tools: [],
      verifiers: [exactMatch()],
      task: (of) => ({ ref: of, prompt: 'p' }),
      demonstrate: () => ({ turns: [], weight: 1 }),
      taskCount: () => Infinity,
    }),
  ]);
  const [outcome] = await verifyAll(
    environments,
    [{ ref, episode: episode(right, 0, 0), escalated: escalated }],
    ladder,
    {
      signal,
    },
  );
  expect(outcome).toMatchObject({
    kind: 'scored',
    components: [
      { verifier: 'ladder', score: 0.8 },
      { verifier: 'rule:linear-length', score: 0.5 },
    ],
  });
});

test('an episode that failed changes what the rules say of no other, wherever it stands', async () => {
  const ruled: RewardSpec = {
    ...reward,
    rules: [
      { kind: 'agreement', by: 'share', weight: 0.5, gatedBy: null },
      { kind: 'diversity', of: 'calls', by: 'count', weight: 0.3, gatedBy: null },
      { kind: 'confidence', weight: 0.3, gatedBy: null },
    ],
  };
  const whole: EpisodeStatus[] = [right, wrong, right, cut];
  const { outcomes } = await verify([whole], { reward: ruled });
  for (const failed of [broken, atTool]) {
    for (let at = 0; at <= whole.length; at++) {
      const among = await verify([whole.toSpliced(at, 0, failed)], { reward: ruled });
      expect(among.outcomes.toSpliced(at, 1)).toEqual(outcomes);
      expect(among.outcomes[at]!.kind).toBe('failed');
    }
  }
});

test('an ensemble is asked member by member, and is one component', async () => {
  const strict = verifierThat(() => ({ kind: 'score', score: 0.25 }), 'strict');
  const kind = verifierThat(() => ({ kind: 'score', score: 1 }), 'kind');
  const { outcomes } = await verify([[right]], {
    verifiers: [exactMatch(), strict, kind],
    reward: {
      components: [reward.components[0]!, { ...reward.components[1]!, verifier: 'both' }],
      ensembles: [{ name: 'both', verifiers: ['kind', 'strict'], by: 'minimum', deviations: 1 }],
      truncated: 'train',
    },
  });
  expect(outcomes[0]).toMatchObject({
    reward: 1.125,
    components: [{}, { verifier: 'both', score: 0.25, members: [{ score: 1 }, { score: 0.25 }] }],
  });
});

test('steps are kept with their verdict; as many as there are turns, or it is none', async () => {
  const says = (steps: unknown) =>
    verify([[right]], {
      verifiers: [exactMatch(), verifierThat(() => ({ kind: 'score', score: 1, steps }))],
    });
  expect((await says([0.5])).outcomes[0]).toMatchObject({ components: [{}, { score: 1, steps: [0.5] }] });
  for (const [steps, evidence] of [
    [[1, 1], 'scored 2 steps of an episode of 1 turns'],
    [[], 'scored 0 steps of an episode of 1 turns'],
    [[2], 'which is no verdict (steps.0: '],
    [[Number.NaN], 'which is no verdict (steps.0: '],
    ['all', 'which is no verdict (steps: '],
  ] as const) {
    const { outcomes, result } = await says(steps);
    expect(outcomes[0]).toMatchObject({
      components: [{}, { score: null, evidence: expect.stringContaining(evidence) as string }],
    });
    expect(result.incidents).toMatchObject([{ function: 'verifier style', kind: 'threw' }]);
  }
});

test('of a long canonical answer the digest tells as much', async () => {
  const long = verifierThat(({ answer }) => ({
    kind: 'score',
    score: 1,
    canonical: `${'x'.repeat(5000)}${answer}`,
  }));
  const { outcomes } = await verify([[right, right, wrong]], {
    verifiers: [long, exactMatch()],
    reward: {
      components: [reward.components[1]!, reward.components[0]!],
      rules: [{ kind: 'diversity', of: 'answer', by: 'count', weight: 1, gatedBy: null }],
      truncated: 'train',
    },
  });
  const half = 1 / Math.sqrt(2);
  expect(outcomes.map((outcome) => outcome.kind === 'scored' && outcome.components[2]!.score)).toEqual([
    half,
    half,
    1,
  ]);
});
