import { describe, expect, test } from 'vitest';
import { programsEnvironment } from '../../../environments/families/programs/environment.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { environmentFactsOf } from '../../../environments/host/facts.ts';
import { hostedHere } from '../../../environments/host/hosted-environment.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { selfPlaySpec } from '../../support/self-play-spec.ts';

const programs = programsEnvironment();
const environments = new Map([
  ['programs', hostedHere(programs)],
  ['calculator', hostedHere(calculatorEnvironment())],
]);

/** The spec with another stage of self-play. */
function stageWith(changes: object, more: object = {}) {
  const { stages, ...spec } = selfPlaySpec();
  const [warmStart, play] = stages;
  return parseSpec({ ...spec, ...more, stages: [warmStart, { ...play, ...changes }] }, 'run', environments);
}
const selfPlay = { proposals: 12 };

describe('a stage of self-play', () => {
  test('knows at which levels it asks for tasks of its own', () => {
    const arms = [4, 5, 6].map((asks) => ({ environment: 'programs', asks, level: asks - 3 }));
    expect(stageWith({}).stages[1]).toMatchObject({ selfPlay: { arms, references: 2, trainProposer: true } });
    const one = stageWith({ tasks: [{ environment: 'programs', levels: [2] }] }).stages[1];
    expect(one).toMatchObject({ selfPlay: { arms: [{ environment: 'programs', asks: 5, level: 2 }] } });
  });

  test.each([
    ['more proposals than tasks', { selfPlay: { proposals: 19 } }, /makes up to 19 new tasks a step/],
    ['several samples of each', { selfPlay: { proposals: 12, samples: 2 } }, /makes up to 24 new tasks/],
    [
      'less for a valid proposal than for one that is none',
      { selfPlay: { ...selfPlay, leastValidReward: -0.6 } },
      /leastValidReward.*at least -0\.5/s,
    ],
    [
      'a task that no sample solves and is paid less than what is no task',
      { selfPlay: { ...selfPlay, unsolvedReward: -0.6 } },
      /unsolvedReward.*at least -0\.5/s,
    ],
    [
      'room for fewer than a step has',
      { selfPlay: { ...selfPlay, mostTasks: 17 } },
      /at least groupsPerStep, 18/,
    ],
    [
      'levels that ask',
      { tasks: [{ environment: 'programs', levels: [1, 4] }] },
      /at level 4; it can at: 1, 2, 3/,
    ],
    [
      'an environment without proposals',
      { tasks: [{ environment: 'calculator', levels: [1] }] },
      /it can at: none/,
    ],
    [
      'steps ahead',
      {
        collect: { kind: 'pipelined', lag: 1 },
        algorithm: { kind: 'reinforce++', baseline: 'level', importanceCap: 2 },
      },
      /needs both roles in one step/,
    ],
    [
      'single proposals compared with themselves',
      { algorithm: { kind: 'grpo' } },
      /nothing to be compared with/,
    ],
    ['refills', { algorithm: { kind: 'dapo' }, selfPlay: { proposals: 6, samples: 2 } }, /draw tasks again/],
    [
      'a KL that is not used',
      { algorithm: { kind: 'reinforce++', baseline: 'level', klCoefficient: 0.1 } },
      /does nothing with baseline level/,
    ],
    [
      'a decay of means that do not move',
      { algorithm: { kind: 'reinforce++', baseline: 'level', baselineDecay: 0.9 } },
      /does nothing with baseline level: leave it out, or take moving/,
    ],
    [
      'a filter by the deviation of groups, where a proposal is a group of its own',
      { diagnosis: { 'echo-trap': ['filter'] } },
      /diagnosis.*a group of one sample has no deviation/s,
    ],
  ])('is refused with %s', (_, changes, why) => {
    expect(() => stageWith(changes)).toThrow(why);
  });

  test('may have an opponent that plays the other role', () => {
    const proposer = { stage: 'warm-start' };
    expect(stageWith({ selfPlay: { ...selfPlay, proposer } }).stages[1]).toMatchObject({
      selfPlay: { proposer },
    });
    const filter = { diagnosis: { 'echo-trap': ['filter'] } };
    expect(stageWith({ ...filter, selfPlay: { ...selfPlay, proposer } })).toBeDefined();
    // Nothing is learnt of its proposals, so they need nothing to be compared with.
    expect(stageWith({ algorithm: { kind: 'grpo' }, selfPlay: { ...selfPlay, proposer } })).toBeDefined();
  });

  test('may have a league of them', () => {
    const proposer = { stage: ['warm-start', 'initialize'] };
    const model = { from: 'theirs' };
    expect(stageWith({ selfPlay: { ...selfPlay, proposer } }, { model }).stages[1]).toMatchObject({
      selfPlay: { proposer },
    });
  });

  test('may draw its league by how hard each is', () => {
    const proposer = { stage: ['warm-start', 'initialize'], draw: 'hard' };
    expect(stageWith({ selfPlay: { ...selfPlay, proposer } }, { model: { from: 'theirs' } })).toBeDefined();
  });

  const warm = { stage: 'warm-start' };
  test.each([
    [
      'that is drawn, and alone',
      { proposer: { stage: 'warm-start', draw: 'hard' } },
      {},
      /selfPlay\.proposer\.draw: has one policy to draw/,
    ],
    [
      'one of which is no earlier stage',
      { proposer: { stage: ['warm-start', 'warm-up'] } },
      {},
      /selfPlay\.proposer\.stage: "warm-up" is no earlier stage.*warm-start/,
    ],
    [
      'that is in its league twice',
      { solver: { stage: ['warm-start', 'warm-start'] } },
      {},
      /selfPlay\.solver\.stage: has "warm-start" more than once/,
    ],
    ['alone in a league', { solver: { stage: ['warm-start'] } }, {}, /selfPlay\.solver\.stage/],
    [
      'in a league, that was never trained',
      { solver: { stage: ['warm-start', 'initialize'] } },
      {},
      /solver\.stage: a model from scratch/,
    ],
    [
      'that is no earlier stage',
      { proposer: { stage: 'play' } },
      {},
      /selfPlay\.proposer\.stage: "play" is no/,
    ],
    ['in both roles', { proposer: warm, solver: warm }, {}, /leaves the stage nothing to train/],
    [
      'that solves, and a proposer that is not trained',
      { solver: warm, trainProposer: false },
      {},
      /leaves nothing to train beside a solver/,
    ],
    [
      'that proposes, and a proposer that is not trained',
      { proposer: warm, trainProposer: false },
      {},
      /does nothing beside a proposer/,
    ],
    ['that was never taught', { solver: { stage: 'initialize' } }, {}, /solver\.stage: a model from scratch/],
    [
      'where turns come from a store',
      { solver: warm },
      { policy: { kind: 'recorded', run: 'other' } },
      /only the decoder of rollout workers holds two/,
    ],
  ])('is refused with an opponent %s', (_, opponent, more, why) => {
    expect(() => stageWith({ selfPlay: { ...selfPlay, ...opponent } }, more)).toThrow(why);
  });

  test('may learn from the majority of its own samples, and from tasks with some majorities alone', () => {
    const majority = { ...selfPlay, labels: 'majority', learnability: 'r-zero' };
    expect(stageWith({}).stages[1]).toMatchObject({ selfPlay: { labels: 'verifier' } });
    expect(stageWith({}).stages[1]).not.toHaveProperty('selfPlay.filter');
    expect(stageWith({ selfPlay: { ...majority, filter: {} } }).stages[1]).toMatchObject({
      selfPlay: { labels: 'majority', filter: { min: 0.3, max: 0.8 } },
    });
    // A challenger is paid by the votes of a solver that stays as it is.
    expect(stageWith({ selfPlay: { ...majority, solver: warm } })).toBeDefined();
    // Who is not trained is not paid either.
    for (const untrained of [{ proposer: warm }, { trainProposer: false }])
      expect(stageWith({ selfPlay: { ...selfPlay, labels: 'majority', ...untrained } })).toBeDefined();
  });

  const majority = { ...selfPlay, labels: 'majority', learnability: 'r-zero' };
  test.each([
    [
      'that pays most where no two samples agree',
      { selfPlay: { ...selfPlay, labels: 'majority' } },
      {},
      /learnability.*set it to "r-zero"/s,
    ],
    ['of two', { selfPlay: majority, numGenerations: 2 }, {}, /numGenerations.*give at least 3/s],
    [
      'and a filter that nobody votes for',
      { selfPlay: { ...selfPlay, filter: {} } },
      {},
      /filter.*set labels to majority/s,
    ],
    [
      'and a filter of what nobody learns from',
      { selfPlay: { ...majority, filter: {}, solver: warm } },
      {},
      /does nothing beside a solver/,
    ],
    [
      'and a filter that leaves nothing',
      { selfPlay: { ...majority, filter: { min: 0.9 } } },
      {},
      /filter\.min: leaves no task: give at most max, which is 0\.8/,
    ],
    [
      'that nobody is paid for',
      { selfPlay: majority },
      {
        reward: {
          shapingMayDominate: true,
          components: [
            { verifier: 'solved', role: 'outcome', weight: 0 },
            { verifier: 'format', role: 'bonus', weight: 1 },
          ],
        },
      },
      /weight: is what agreeing with the majority is worth/,
    ],
    [
      'and a rule that reads what the verifier says',
      { selfPlay: majority },
      {
        reward: {
          components: [{ verifier: 'solved', role: 'outcome', weight: 1 }],
          rules: [{ kind: 'process', verifier: 'solved', by: 'minimum', weight: 0.1 }],
        },
      },
      /rules\[0\]\.verifier: would pay by what the deciding verifier says/,
    ],
  ])('is refused with a majority %s', (_, changes, more, why) => {
    expect(() => stageWith(changes, more)).toThrow(why);
  });

  test('has no least reward of valid proposals where none is written, so that specs from before stay as they are', () => {
    expect(stageWith({}).stages[1]).not.toHaveProperty('selfPlay.leastValidReward');
    const bound = stageWith({ selfPlay: { ...selfPlay, leastValidReward: -0.5 } });
    expect(bound.stages[1]).toMatchObject({ selfPlay: { leastValidReward: -0.5 } });
  });

  test('compares by groups where a prompt has several proposals, or none is trained', () => {
    expect(stageWith({ algorithm: { kind: 'grpo' }, selfPlay: { proposals: 6, samples: 2 } })).toBeDefined();
    expect(
      stageWith({ algorithm: { kind: 'grpo' }, selfPlay: { ...selfPlay, trainProposer: false } }),
    ).toBeDefined();
  });
});

test('what can be known of proposals without running a line is told to workers', () => {
  expect(environmentFactsOf(programs, 'here').proposals).toEqual({ levels: { 4: 1, 5: 2, 6: 3 } });
  expect(environmentFactsOf(calculatorEnvironment(), 'here').proposals).toBeNull();
});
