import { describe, expect, test } from 'vitest';
import { problemOfCaches } from '../../../core/schema/beams.ts';
import type { SpecEnvironment } from '../../../core/schema/check.ts';
import { parseEvaluate, readEvaluate } from '../../../spec/parse-evaluate.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import type { CurriculumSpec } from '../../../core/schema/curriculum-spec.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { smallConfig } from '../../support/engine/random-model.ts';
import { environments } from './problems-of.ts';

const tasks = [{ environment: 'calculator', levels: [1] }];
const base = parseSpec(briefSpec(), 'base', environments) as unknown as CurriculumSpec;
const parse = (written: object, of: CurriculumSpec | null = base) =>
  parseEvaluate({ checkpoint: 'base', tasks, ...written }, 'named', of, environments);

describe('what is not written', () => {
  test('is as in the run that the checkpoint is from', () => {
    const spec = parse({ sampling: { maxTurns: 5 } });
    expect(spec.sampling).toEqual({ ...base.sampling, maxTurns: 5 });
    expect(spec.reward).toEqual({
      components: [{ verifier: 'exact-match', role: 'outcome', weight: 1, gatedBy: null }],
      truncated: 'train',
    });
    expect(spec).toMatchObject({ run: 'named', split: 'test', seed: 0, stages: [] });
    expect(spec.evaluation).toEqual({
      arms: [{ environment: 'calculator', level: 1 }],
      count: 1000,
      samples: 1,
      confidence: 0.95,
    });
  });

  test('is all levels of an environment, and no more tasks than it has', () => {
    const levels = environments.get('calculator')!.levels;
    const { evaluation } = parse({ tasks: [{ environment: 'calculator' }] });
    expect(evaluation.arms.map(({ level }) => level)).toEqual(levels);
  });

  test('is refused where nothing says what success is', () => {
    expect(() => parse({}, null)).toThrow(
      /name the verifier that decides success.*calculator has exact-match/s,
    );
    const reward = { components: [{ verifier: 'exact-match', role: 'outcome' }] };
    expect(parse({ reward }, null).reward.components).toHaveLength(1);
  });
});

describe('who makes the episodes', () => {
  const agent = { command: ['node', 'agent.mjs'] };
  const withAgent = parseSpec({ ...briefSpec(), agent }, 'base', environments) as unknown as CurriculumSpec;

  test('is the agent of the run, unless another one or none is named', () => {
    expect(parse({}, withAgent).agent).toMatchObject(agent);
    expect(parse({ agent: { url: 'http://127.0.0.1:4567' } }, withAgent).agent).toMatchObject({
      url: 'http://127.0.0.1:4567',
    });
    expect(parse({ agent: null }, withAgent)).not.toHaveProperty('agent');
    expect(parse({})).not.toHaveProperty('agent');
    expect(parse({ agent }).agent).toMatchObject(agent);
  });

  test('cannot be an agent where a session is judged, and where that was the run’s the message says how to go on', () => {
    const house = { ...environments.get('calculator')!, name: 'house', resume: 'fold' as const };
    const among = new Map<string, SpecEnvironment>([...environments, ['house', house]]);
    const written = { checkpoint: 'base', tasks: [{ environment: 'house', levels: [1] }] };
    expect(() => parseEvaluate(written, 'named', withAgent, among)).toThrow(
      /tasks\[0\]\.environment: "house" judges what happened in a session.*"agent": null/,
    );
    expect(() => parseEvaluate({ ...written, agent }, 'named', base, among)).toThrow(
      /name an environment that judges answers$/m,
    );
  });
});

describe('servers that sample', () => {
  const policy = { kind: 'http', server: 'vllm', urls: ['http://127.0.0.1:8000'] };

  test('are as in a spec, and compare no log-probs', () => {
    const given = parse({ policy: { ...policy, folder: '/shared' } }).policy!;
    expect(given).toMatchObject({ ...policy, folder: '/shared', requestTokens: 512, maxLogprobGap: 0 });
    expect(parse({})).not.toHaveProperty('policy');
  });

  test('take the likeliest tokens, and no other cut of the distribution', () => {
    expect(parse({ policy, sampling: { topK: 1 } }).sampling.topK).toBe(1);
    expect(() => parse({ policy, sampling: { topK: 2 } })).toThrow(/sampling\.topK: needs the decoder/);
    expect(() => parse({ policy, sampling: { topK: 1, topP: 0.9 } })).toThrow(/sampling\.topP: needs/);
    expect(() => parse({ policy: { kind: 'recorded', run: 'x' } })).toThrow(/policy\.kind/);
    expect(() => parse({ policy: { ...policy, maxLogprobGap: 1 } })).toThrow(/maxLogprobGap/);
  });
});

test('a verifier of a higher tier is refused, with what judges here and what it can judge', () => {
  const written = {
    checkpoint: 'base',
    tasks: [{ environment: 'molecules', levels: [1] }],
    reward: { components: [{ verifier: 'dft', role: 'outcome' }] },
  };
  expect(() => parseEvaluate(written, 'named', null, environments)).toThrow(
    /components\[0\]\.verifier: "dft" is of the tier high-fidelity.*name one of molecule, format;.*evaluateBy is "dft"/,
  );
});

describe('tiers that judge', () => {
  const molecules = [{ environment: 'molecules', levels: [1] }];
  const rungs = [
    { verifier: 'molecule', passAtLeast: 0.5 },
    { verifier: 'dft', passAtLeast: 0.5 },
  ];
  const by = (verification: object, of: CurriculumSpec | null = null, more: object = {}) =>
    parse({ tasks: molecules, verification, ...more }, of);

  test('are as in a spec, and what is no answer to the lowest one is none to the ladder', () => {
    const { verification, reward } = by({ rungs });
    expect(verification).toMatchObject({
      evaluateBy: 'dft',
      rungs: [
        { verifier: 'molecule', tier: 'fast' },
        { verifier: 'dft', tier: 'high-fidelity', concurrency: 16 },
      ],
    });
    expect(reward).toMatchObject({
      components: [{ verifier: 'ladder', role: 'outcome' }],
      ladder: { verifier: 'molecule', passAtLeast: 0.5 },
    });
    expect(parse({})).not.toHaveProperty('verification');
  });

  test('are those of the run where none are named, but for the one that judges', () => {
    const { verification } = by({ rungs });
    const run = { ...base, verification } as CurriculumSpec;
    expect(by({}, run).verification).toEqual(verification);
    expect(by({ evaluateBy: 'dft' }, run).verification).toEqual(verification);
    expect(
      parse({ tasks: molecules, reward: { components: [{ verifier: 'molecule', role: 'outcome' }] } }, run),
    ).not.toHaveProperty('verification');
  });

  test.each<[string, object, RegExp, object?]>([
    ['no tiers', {}, /verification: names no tiers, and the checkpoint is of no run that has some/],
    [
      'another verifier',
      { rungs, evaluateBy: 'dfft' },
      /evaluateBy: no tier has this verifier; did you mean "dft"/,
    ],
    ['the lowest one', { rungs, evaluateBy: 'molecule' }, /"molecule" is the lowest tier.*name one of dft/],
    [
      'one that a budget would end',
      { rungs: [rungs[0], { ...rungs[1], budget: { usd: 1 } }] },
      /"molecule" is the lowest tier/,
    ],
    [
      'an unknown tier',
      { rungs: [rungs[0], { verifier: 'dftt', passAtLeast: 1 }] },
      /has no verifier "dftt"/,
    ],
    [
      'another outcome',
      { rungs },
      /reward\.components has \{ "verifier": "ladder", "role": "outcome" \}/,
      { reward: { components: [{ verifier: 'molecule', role: 'outcome' }] } },
    ],
    ['what only steps read', { rungs, offerLateFor: 2 }, /offerLateFor: unknown field/],
  ])('%s is refused, and says why', (_, verification, why, more) => {
    expect(() => by(verification, null, more)).toThrow(why);
  });
});

test('an agent that has the tools of environments may be measured where a session is judged', () => {
  const house = { ...environments.get('calculator')!, name: 'house', resume: 'fold' as const };
  const among = new Map<string, SpecEnvironment>([...environments, ['house', house]]);
  const agent = { command: ['node', 'agent.mjs'], environmentTools: {} };
  const written = { checkpoint: 'base', tasks: [{ environment: 'house', levels: [1] }], agent };
  expect(parseEvaluate(written, 'named', base, among).agent).toMatchObject({
    environmentTools: { maxCalls: 100 },
  });
});

test('greedy sampling, which nothing could be trained on, can be measured', () => {
  expect(parse({ sampling: { topK: 1 } }).sampling.topK).toBe(1);
});

test.each([
  [{ checkpoint: undefined }, /checkpoint: is missing/],
  [{ tasks: [{ environment: 'calculater' }] }, /tasks\[0\]\.environment.*did you mean "calculator"/],
  [{ tasks: [{ environment: 'calculator', levels: [77] }] }, /has no level 77; valid/],
  [{ tasks: [...tasks, ...tasks] }, /named twice/],
  [{ count: 100_000, samples: 2 }, /samples: makes 200000 episodes/],
  [{ split: 'train' }, /split: must be "test" or "heldout"/],
  [{ reward: { components: [{ verifier: 'exact', role: 'outcome' }] } }, /no verifier "exact"/],
  [{ reward: { components: [{ verifier: 'exact-match', role: 'bonus' }] } }, /exactly one component/],
  [{ sampling: { topP: 0.9 } }, /sampling\.topP/],
  [{ dialect: { name: 'gradus', thinking: true } }, /dialect\.thinking: has no effect/],
  [{ tests: tasks }, /tests: unknown field; did you mean "tasks"/],
  [{ run: '../elsewhere' }, /run: /],
])('%j is refused, and says why', (written, why) => {
  expect(() => parse(written)).toThrow(why);
  expect(() => parse(written)).toThrow('the evaluation was refused before anything was spent');
});

test('a dry run may be asked about tasks alone', () => {
  expect(readEvaluate({ tasks, dryRun: true }).checkpoint).toBeUndefined();
  expect(() => readEvaluate(undefined)).toThrow('the evaluation was refused');
});

describe('beams', () => {
  const beams = { width: 4, groups: 4, diversity: 0.5 };

  test('search among all tokens, whatever the run has cut; absent, turns are sampled', () => {
    const cut = { ...briefSpec(), sampling: { topK: 20, topP: 0.9 } };
    const of = parseSpec(cut, 'base', environments) as unknown as CurriculumSpec;
    const spec = parse({ beams, samples: 4 }, of);
    expect(spec.beams).toEqual(beams);
    expect(spec.sampling).toEqual({ ...of.sampling, topK: 0, topP: 1 });
    expect(parse({}, of)).not.toHaveProperty('beams');
    expect(parse({}, of).sampling).toMatchObject({ topK: 20, topP: 0.9 });
    expect(parse({ beams: { width: 8 } }).beams).toEqual({ width: 8, groups: 1, diversity: 0 });
  });

  const policy = { kind: 'http', server: 'vllm', urls: ['http://127.0.0.1:8000'] };
  test.each([
    ['groups that do not share the width', { beams: { ...beams, width: 6 } }, 'beams.groups: 4 groups'],
    ['more beams than a block holds', { beams: { ...beams, width: 68 } }, 'beams.width: must be at most 64'],
    ['groups that are all the same', { beams: { ...beams, diversity: 0 } }, 'beams.diversity: of 0'],
    ['a penalty with nobody to differ from', { beams: { width: 4, diversity: 1 } }, 'there is one'],
    ['more samples than groups', { beams, samples: 5 }, 'samples: a search finds the same turn each time'],
    ['top-k', { beams, sampling: { topK: 5 } }, 'sampling.topK: cuts what is sampled'],
    ['top-p', { beams, sampling: { topP: 0.9 } }, 'sampling.topP: cuts what is sampled'],
    ['servers that sample', { beams, policy }, 'beams: are searched for by the decoder'],
    ['an agent', { beams, agent: { command: ['node', 'agent.mjs'] } }, 'an agent makes the episodes'],
  ])('are refused with %s', (_, written, why) => {
    expect(() => parse(written)).toThrow(why);
  });

  test('need memory, which is estimated', () => {
    // Of Qwen2.5-0.5B: 2 · 24 layers · 2 heads · 64 numbers of 4 bytes for a token.
    const model = { ...smallConfig, layers: 24, keyValueHeads: 2, headSize: 64 };
    expect(problemOfCaches(model, beams, 4096)).toBeUndefined();
    const wide = { ...beams, width: 64 };
    expect(problemOfCaches(model, wide, 2048)).toBeUndefined();
    expect(problemOfCaches(model, wide, 4096)).toContain('take up to 6.4 GiB');
  });
});
