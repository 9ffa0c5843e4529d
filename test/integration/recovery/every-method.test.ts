import { afterAll, beforeAll, expect, test } from 'vitest';
import { METHOD_KINDS } from '../../../core/algorithms/index.ts';
import { ids } from '../../../core/names.ts';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import { killInActivity } from '../../support/kill-workers.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { DONE } from '../../support/ended.ts';

// One durable run that goes through every method, two steps each, and then learns from stale samples, and ends with the
// same weights when workers are killed while a critic's values are scored, while it is updated, while a step is refilled,
// and while a tree grows.

/** Long enough to be hit, in one step or another: three workflows of groups a step. */
const HIT = { groupsPerStep: 12, groupsPerWorkflow: 4, maxSteps: 5 };
const LONG = ['ppo', 'dapo', 'agentq'];
/** A teacher is a run of its own: `opd` is in teachers-and-hindsight.test.ts. */
const KINDS = METHOD_KINDS.filter((kind) => kind !== 'opd');
const OF_METHOD: Partial<Record<(typeof METHOD_KINDS)[number], object>> = {
  ppo: { klCoefficient: 0.05, entropyBonus: 0.01 },
  'reinforce++': { baseline: 'none', klCoefficient: 0.05 },
  dapo: { maxRefills: 3 },
  vapo: { critic: { pretrainingSteps: 1 } },
  agentq: { alpha: 0.8, margin: 0 },
};

/** Those that weigh what an earlier policy has sampled. */
const STALE = [{ kind: 'vtrace' }, { kind: 'grpo', importanceCap: 2 }];

let installation: TestInstallation;
let leftAlone: CurriculumResult;

const tiny = tinySpec({ maxSteps: 2, groupsPerStep: 4 });
const [warmStart, rl] = tiny.stages;
const nameOf = (kind: string): string => kind.replaceAll('+', 'p');
const spec = {
  ...tiny,
  reward: {
    components: [...tiny.reward.components, { verifier: 'sub-goals', role: 'bonus', weight: 0 }],
    rules: [{ kind: 'process', verifier: 'sub-goals', by: 'turns', weight: 0.1 }],
  },
  stages: [
    warmStart,
    ...KINDS.map((kind) => ({
      ...rl,
      name: nameOf(kind),
      numGenerations: 4,
      algorithm: { kind, minibatch: 16, ...OF_METHOD[kind] },
      graduation: { ...rl.graduation, successAtLeast: 0.5, everySteps: 2, tasks: 8 },
      ...(LONG.includes(kind) && HIT),
      // Two samples are often worth the same, and the task is replaced.
      ...(kind === 'dapo' && { numGenerations: 2 }),
      ...(kind === 'agentq' && {
        ...HIT,
        numGenerations: 8,
        collect: { kind: 'tree', roots: 2, branches: 3 },
      }),
    })),
    ...STALE.map((algorithm) => ({
      ...rl,
      name: `stale-${algorithm.kind}`,
      algorithm: { minibatch: 16, ...algorithm },
      collect: { kind: 'stored', stage: 'ppo' },
      graduation: { ...rl.graduation, successAtLeast: 0.5, everySteps: 2, tasks: 8 },
    })),
  ],
};

beforeAll(async () => {
  installation = await startTestInstallation();
  const run = await installation.runs.start('left-alone', spec);
  leftAlone = await run.result();
}, 600_000);

afterAll(() => installation?.remove());

test('every method takes its steps in a durable run', () => {
  const ran = leftAlone.stages.map(({ name, steps }) => [name, steps]);
  expect(leftAlone.end).toEqual(DONE);
  for (const kind of KINDS) {
    expect(ran).toContainEqual([nameOf(kind), LONG.includes(kind) ? HIT.maxSteps : 2]);
  }
  for (const { kind } of STALE) expect(ran).toContainEqual([`stale-${kind}`, 2]);
});

test('and a run whose workers are killed where methods differ ends with the same weights', async () => {
  const { workers, runs } = installation;
  const run = await runs.start('killed', spec);
  const during = (at: (step: number) => string, activity: string, role: 'learner' | 'rollout') =>
    killInActivity({ workers, runs }, at, activity, role);
  // Groups beyond those of a step are of a refill.
  await during((step) => ids.group('killed', nameOf('dapo'), step, 3), 'advance', 'rollout');
  await during(() => ids.stage('killed', 'ppo'), 'scoreTokens', 'learner');
  await during(() => ids.stage('killed', 'ppo'), 'trainStep', 'learner');
  // Three groups of roots, three of the first round; this is of the second.
  await during((step) => ids.group('killed', 'agentq', step, 6), 'advance', 'rollout');
  const result = await run.result();
  expect(result.checkpoint.weights).toBe(leftAlone.checkpoint.weights);
}, 600_000);
