import { describe, expect, test } from 'vitest';
import { collectSchema, mostStaleness } from '../../../core/schema/collect.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { environments } from './problems-of.ts';

const tiny = tinySpec();
const [warmStart, rl] = tiny.stages;
/** The tiny curriculum with one more stage, which learns from the episodes of the second. */
const parse = (over: object, spec: object = {}) =>
  parseSpec(
    {
      ...tiny,
      ...spec,
      stages: [
        warmStart,
        rl,
        {
          ...rl,
          name: 'offline',
          algorithm: { kind: 'rft' },
          collect: { kind: 'stored', stage: 'rl' },
          ...over,
        },
      ],
    },
    'run',
    environments,
  );

test('stored episodes may be of an earlier stage, or of another run', () => {
  expect(parse({}).stages[2]).toMatchObject({ collect: { kind: 'stored', stage: 'rl' } });
  expect(parse({}).stages[1]).toMatchObject({ collect: { kind: 'on-policy' } });
  const collect = { kind: 'stored', run: 'other', stage: 'their-stage', steps: { to: 4 } };
  expect(parse({ collect }).stages[2]).toMatchObject({ collect: { ...collect, steps: { from: 1, to: 4 } } });
});

describe('a pipelined stage', () => {
  const pipelined = (lag: number, algorithm: object, other: object = {}) =>
    parse({ collect: { kind: 'pipelined', lag }, algorithm, ...other }).stages[2];

  test('takes methods that weigh their samples, and refills them', () => {
    expect(pipelined(2, { kind: 'dapo', importanceCap: 2, maxRefills: 3 })).toMatchObject({
      collect: { kind: 'pipelined', lag: 2 },
    });
    expect(pipelined(1, { kind: 'vtrace' })).toBeDefined();
  });

  test('takes a loss without a clip one step behind, and further behind if it is told to', () => {
    const remax = { kind: 'remax', importanceCap: 2 };
    expect(pipelined(1, remax)).toMatchObject({ collect: { lag: 1 } });
    expect(pipelined(2, { ...remax, importanceRule: 'difference' })).toBeDefined();
    const insists = { kind: 'pipelined', lag: 3, allowUnclipped: true };
    expect(parse({ collect: insists, algorithm: remax }).stages[2]).toMatchObject({ collect: insists });
    expect(() => pipelined(2, remax)).toThrow(
      'remax has a loss without a clip, and samples may be 2 steps old: choose importanceRule difference or a method with a clip, let them be 1 step old, or insist by collect.allowUnclipped',
    );
    const asynchronous = { kind: 'asynchronous', maxStaleness: 2 };
    expect(() => parse({ collect: asynchronous, algorithm: remax })).toThrow('samples may be 2 steps old');
    const more = { ...asynchronous, allowUnclipped: true };
    expect(parse({ collect: more, algorithm: remax }).stages[2]).toMatchObject({ collect: more });
    expect(() => parse({ algorithm: remax })).toThrow('remax is on-policy and needs fresh samples');
  });

  test('says nothing of clips where the spec does not', () => {
    const { collect } = pipelined(1, { kind: 'vtrace' }) as { collect: object };
    expect(Object.keys(collect)).toEqual(['kind', 'lag']);
  });

  test.each<[object, string]>([
    [{ importanceCap: 0, importanceFloor: 0.5 }, 'bounds a weight that importanceCap 0 leaves out'],
    [{ importanceCap: 2, importanceFloor: 1.5 }, 'tokens of the policy itself would be weighed up'],
    [{ importanceCap: 2, importanceFloor: 1, importanceRule: 'mask' }, 'become less likely by one bit'],
    [{ importanceCap: 0, importanceRule: 'difference' }, 'leaves the rule difference out'],
    [{ importanceCap: 2, differenceLow: 0.2 }, 'is read by importanceRule difference only'],
  ])('refuses the correction %j', (correction, why) => {
    expect(() => pipelined(0, { kind: 'grpo', ...correction })).toThrow(why);
  });

  test('a correction that is left out is in no plan', () => {
    const plain = pipelined(1, { kind: 'grpo', importanceCap: 2 }) as { plan: { objective: object } };
    expect(Object.keys(plain.plan.objective)).not.toContain('importanceFloor');
    const dppo = pipelined(1, { kind: 'grpo', importanceCap: 2, importanceRule: 'difference' });
    expect(dppo).toMatchObject({ plan: { objective: { differenceLow: 0.2, differenceHigh: 0.2 } } });
  });

  test('without lag takes every method', () => {
    expect(pipelined(0, { kind: 'ppo' })).toBeDefined();
    expect(pipelined(0, { kind: 'grpo' })).toBeDefined();
  });

  test.each<[string, number, object, object, string]>([
    [
      'a method that needs fresh samples',
      1,
      { kind: 'gspo' },
      {},
      'gspo is on-policy and needs fresh samples',
    ],
    [
      'samples that nothing weighs',
      1,
      { kind: 'grpo' },
      {},
      'algorithm.importanceCap: the policy that samples is behind the one that is trained: set a cap above 0 (2, say), or collect.lag to 0',
    ],
    [
      'a KL of the policy that sampled',
      1,
      { kind: 'reinforce++', baseline: 'none', klCoefficient: 0.1, importanceCap: 2 },
      {},
      'algorithm.klCoefficient: is of the KL of the policy that sampled',
    ],
    [
      'more than can be carried along',
      16,
      { kind: 'vtrace' },
      { groupsPerStep: 64, groupsPerWorkflow: 2 },
      'collect.lag: begins 512 child workflows before their turn, at most 128',
    ],
    [
      'tasks whose names would be more than can be carried along',
      8,
      { kind: 'vtrace' },
      { groupsPerStep: 1024, groupsPerWorkflow: 128 },
      'collect.lag: has up to 8192 tasks before their turn, whose names are carried along, at most 4096',
    ],
    ['a lag beyond any use', 17, { kind: 'vtrace' }, {}, 'collect.lag'],
  ])('refuses %s', (_, lag, algorithm, other, message) => {
    expect(() => pipelined(lag, algorithm, other)).toThrow(message);
  });
});

describe('an asynchronous stage', () => {
  const asynchronous = (collect: object, algorithm: object, other: object = {}) =>
    parse({ collect: { kind: 'asynchronous', ...collect }, algorithm, groupsPerWorkflow: 1, ...other })
      .stages[2];
  const weighed = { kind: 'grpo', importanceCap: 2 };

  test('takes methods that weigh their samples', () => {
    const collect = { kind: 'asynchronous', maxStaleness: 2 };
    expect(asynchronous({}, weighed)).toMatchObject({ collect });
    expect(asynchronous({ maxStaleness: 4 }, { kind: 'vtrace' })).toBeDefined();
    expect(asynchronous({ maxStaleness: 0 }, { kind: 'ppo' })).toBeDefined();
    const goesOn = { onNewWeights: 'continue' };
    expect(asynchronous(goesOn, weighed)).toMatchObject({ collect: { ...collect, ...goesOn } });
  });

  test.each<[string, object, object, object, string]>([
    [
      'a method that needs fresh samples',
      {},
      { kind: 'gspo' },
      {},
      'remax, or set collect.maxStaleness to 0',
    ],
    [
      'samples that nothing weighs',
      {},
      { kind: 'grpo' },
      {},
      'algorithm.importanceCap: the policy that samples is behind the one that is trained: set a cap above 0 (2, say), or collect.maxStaleness to 0',
    ],
    [
      'refills',
      {},
      { kind: 'dapo', importanceCap: 2, maxRefills: 2 },
      {},
      'algorithm.maxRefills: a step of asynchronous rollouts takes groups that are there',
    ],
    [
      'workflows that do not make up a step',
      {},
      weighed,
      { groupsPerStep: 8, groupsPerWorkflow: 3 },
      'groupsPerWorkflow: does not divide groupsPerStep, 8',
    ],
    [
      'too few in flight for one workflow',
      { inFlight: 3 },
      weighed,
      { groupsPerStep: 8, groupsPerWorkflow: 4 },
      'collect.inFlight: a workflow has 4 tasks',
    ],
    [
      'more workflows than can be carried along',
      { maxStaleness: 8 },
      weighed,
      { groupsPerStep: 16 },
      'collect.maxStaleness: begins up to 144 child workflows',
    ],
    [
      'a temperature that changes by the step',
      {},
      weighed,
      { exploration: { temperature: { from: 1.2, to: 1, steps: 4 } } },
      'exploration.temperature: changes by the step',
    ],
    [
      'alarms that change the temperature',
      {},
      weighed,
      { diagnosis: { 'entropy-collapse': ['explore'] } },
      'changes the temperature, and an asynchronous step',
    ],
  ])('refuses %s', (_, collect, algorithm, other, message) => {
    expect(() => asynchronous(collect, algorithm, other)).toThrow(message);
  });
});

describe('a stage with a replay buffer', () => {
  const replay = (collect: object, algorithm: object, other: object = {}, spec: object = {}) =>
    parse({ collect: { kind: 'replay', ...collect }, algorithm, ...other }, spec).stages[2];
  const weighed = { kind: 'grpo', importanceCap: 2 };

  test('takes methods that weigh their samples group by group', () => {
    const collect = { part: 0.25, maxStaleness: 4, priority: 'oldest', minEffectiveSamples: 0.5 };
    expect(replay({}, weighed)).toMatchObject({ collect });
    expect(replay({}, { kind: 'dapo', importanceCap: 2, maxRefills: 2 })).toBeDefined();
    expect(replay({ maxStaleness: 1 }, { kind: 'rloo', importanceCap: 2 })).toBeDefined();
  });

  test('that replays nothing takes every method', () => {
    expect(replay({ part: 0 }, { kind: 'ppo' })).toBeDefined();
    expect(replay({ part: 0 }, { kind: 'grpo' })).toBeDefined();
  });

  test.each<[string, object, object, object, string]>([
    [
      'a method that needs fresh samples',
      {},
      { kind: 'ppo' },
      {},
      'algorithm.kind: ppo has advantages or losses of a step as a whole, and groups of earlier steps are replayed: choose grpo, dapo, rloo',
    ],
    [
      'advantages of a step as a whole',
      {},
      { kind: 'reinforce++', importanceCap: 2 },
      {},
      'algorithm.kind: reinforce++ has advantages or losses of a step as a whole',
    ],
    [
      'samples that nothing weighs',
      {},
      { kind: 'grpo' },
      {},
      'algorithm.importanceCap: earlier weights have sampled the groups that are replayed',
    ],
    [
      'more successes than twice what is sampled',
      { part: 0.75, successes: {} },
      weighed,
      {},
      'collect.part: replays 6 of the 8 groups of a step, and successes are at most twice as many',
    ],
    [
      'bounds that no success is within',
      { successes: { from: 0.9, to: 0.5 } },
      weighed,
      {},
      'collect.successes.from: leaves nothing',
    ],
    [
      'a part that comes to nothing',
      { part: 0.1 },
      weighed,
      {},
      'collect.part: replays none of the 8 groups',
    ],
    [
      'more than can be carried along',
      { maxStaleness: 16 },
      weighed,
      { groupsPerStep: 512 },
      'collect.maxStaleness: keeps up to 8192 groups',
    ],
    [
      'more objects than can be carried along',
      { maxStaleness: 16 },
      weighed,
      { groupsPerStep: 64, groupsPerWorkflow: 1 },
      'collect.maxStaleness: keeps what 1024 child workflows have left',
    ],
    [
      'a temperature that changes by the step',
      {},
      weighed,
      { exploration: { temperature: { from: 1.2, to: 1, steps: 4 } } },
      'exploration.temperature: changes by the step',
    ],
    [
      'alarms that change the temperature',
      {},
      weighed,
      { diagnosis: { 'entropy-collapse': ['explore'] } },
      'changes the temperature, and groups of earlier steps',
    ],
  ])('refuses %s', (_, collect, algorithm, other, message) => {
    expect(() => replay(collect, algorithm, other)).toThrow(message);
  });

  test('counts the age of what it replays as that of samples', () => {
    expect(mostStaleness(collectSchema.parse({ kind: 'replay', maxStaleness: 3 }))).toBe(3);
    expect(mostStaleness(collectSchema.parse({ kind: 'replay', part: 0, maxStaleness: 3 }))).toBe(0);
  });
});

test('a tree says how it grows, and numGenerations counts all of its samples', () => {
  const collect = { kind: 'tree', roots: 2 };
  const stage = parse({ collect, algorithm: { kind: 'agentq' } }).stages[2];
  expect(stage).toMatchObject({ collect: { roots: 2, branches: 4, width: 2, exploration: 0.5 } });
  expect(parse({ collect, algorithm: { kind: 'grpo' } }).stages[2]).toMatchObject({ collect });
});

test.each([
  { kind: 'vtrace' },
  { kind: 'vtrace', target: 'retrace', klCoefficient: 0.1 },
  { kind: 'grpo', importanceCap: 2 },
  { kind: 'dapo', importanceCap: 2, maxRefills: 0 },
  { kind: 'rloo', importanceCap: 2, importanceRule: 'mask' },
  { kind: 'reinforce++', importanceCap: 2 },
  { kind: 'gigpo', importanceCap: 2 },
])('what weighs its samples learns from them: %o', (algorithm) => {
  expect(parse({ algorithm }).stages[2]).toMatchObject({ algorithm });
});

describe('refuses', () => {
  test.each<[string, object, string]>([
    [
      'a method that must sample itself, with those that need not',
      { algorithm: { kind: 'ppo' } },
      'stages[2].algorithm.kind: ppo is on-policy and needs fresh samples: choose vtrace, rft, dpo, agentq, kto, opd, or with an importanceCap (2, say) grpo, dapo, rloo, reinforce++, gigpo, process, or leave out collect',
    ],
    [
      'a method without the weight that it needs',
      { algorithm: { kind: 'grpo' } },
      'stages[2].algorithm.importanceCap: stored episodes were sampled by another policy than the one that is trained: set a cap above 0 (2, say), or leave out collect',
    ],
    [
      'a penalty of the policy that sampled',
      { algorithm: { kind: 'reinforce++', baseline: 'none', klCoefficient: 0.1, importanceCap: 2 } },
      'stages[2].algorithm.klCoefficient: is of the KL of the policy that sampled',
    ],
    [
      'the refills that DAPO has by default',
      { algorithm: { kind: 'dapo', importanceCap: 2 } },
      'stages[2].algorithm.maxRefills: does nothing where no task is sampled: set it to 0',
    ],
    [
      'an alarm that raises the temperature of what nobody samples',
      { diagnosis: { loops: ['note', 'explore'] } },
      'stages[2].diagnosis.loops[1]: raises the sampling temperature, and stored episodes are sampled already: leave it out',
    ],
    [
      'more tasks than one event can name',
      { groupsPerStep: 4097 },
      'stages[2].groupsPerStep: takes 4097 stored tasks a step, at most 4096: lower it and take more steps',
    ],
    [
      'a stage that comes later',
      { collect: { kind: 'stored', stage: 'offline' } },
      'stages[2].collect.stage: "offline" is no earlier stage with episodes',
    ],
    [
      'a stage of demonstrations',
      { collect: { kind: 'stored', stage: 'warm-start' } },
      'stages[2].collect.stage: "warm-start" is no earlier stage with episodes',
    ],
    ['a stage by a wrong name', { collect: { kind: 'stored', stage: 'rk' } }, 'did you mean "rl"?'],
    [
      'steps that end before they begin',
      { collect: { kind: 'stored', stage: 'rl', steps: { from: 3, to: 2 } } },
      'stages[2].collect.steps.to: is before from = 3',
    ],
    [
      'steps that the stage does not take',
      { collect: { kind: 'stored', stage: 'rl', steps: { from: 5000 } } },
      'stages[2].collect.steps.from: is after the last of the ',
    ],
    [
      'tasks that the stage does not have',
      { tasks: [{ environment: 'calculator', levels: [3] }] },
      'stages[2].collect.stage: "rl" rolls out none of the tasks of this stage, but calculator:1',
    ],
    [
      'exploration of what is not sampled',
      { exploration: { toolChoice: 0.1 } },
      'stages[2].exploration: does nothing where no task is sampled',
    ],
    [
      'a tree that nothing branches off',
      { collect: { kind: 'tree', roots: 8 }, numGenerations: 8, algorithm: {} },
      'stages[2].collect.roots: are all of the 8 samples of a task',
    ],
    [
      'a tree that is as wide as it has samples',
      { collect: { kind: 'tree', roots: 4, branches: 2, width: 8 }, numGenerations: 8, algorithm: {} },
      'stages[2].collect.width: all of the 8 samples of a task would begin at the prompt',
    ],
    [
      'rounds whose trajectories no request can name',
      { collect: { kind: 'tree', roots: 2, branches: 1 }, numGenerations: 128, algorithm: {} },
      'stages[2].collect.branches: makes 126 rounds, and each names the groups of all before it, at most 64: raise it',
    ],
    [
      'refills by roots that are alone',
      { collect: { kind: 'tree', roots: 1 }, algorithm: { kind: 'dapo' } },
      'stages[2].collect.roots: algorithm.maxRefills compares the roots of a task',
    ],
    [
      'agentq without a tree',
      { collect: { kind: 'on-policy' }, algorithm: { kind: 'agentq' } },
      'stages[2].algorithm.kind: agentq prefers turns to others from the same state',
    ],
    [
      'more rounds than a history can name',
      {
        collect: { kind: 'tree', roots: 1, branches: 1 },
        groupsPerStep: 32,
        groupsPerWorkflow: 1,
        numGenerations: 64,
        algorithm: {},
      },
      'makes 2048 child workflows of the 32 tasks of a step and 63 rounds of a tree, at most 1000: raise it',
    ],
    ['another kind', { collect: { kind: 'storred', stage: 'rl' } }, 'stages[2].collect.kind'],
    ['fields of the other kind', { collect: { kind: 'on-policy', stage: 'rl' } }, 'stages[2].collect.stage'],
  ])('%s', (_, over, message) => {
    expect(() => parse(over)).toThrow(message);
  });

  test.each<[string, object, string]>([
    [
      'a tree of single turns',
      { sampling: { ...tiny.sampling, maxTurns: 1 } },
      'stages[2].collect.kind: an episode of one turn has nothing to branch off',
    ],
    [
      'a tree whose samples a rule compares',
      { reward: { ...tiny.reward, rules: [{ kind: 'diversity', weight: 0.1 }] } },
      'stages[2].collect: the samples of a tree come in rounds and begin alike, and the rule diversity',
    ],
  ])('%s', (_, spec, message) => {
    expect(() => parse({ collect: { kind: 'tree' }, algorithm: {} }, spec)).toThrow(message);
  });
});
