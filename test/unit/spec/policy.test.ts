import { describe, expect, test } from 'vitest';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { environments, problemsOf } from './problems-of.ts';

const tiny = tinySpec({ maxSteps: 2 });
const [warmStart, rl] = tiny.stages;
const http = {
  kind: 'http',
  server: 'vllm',
  urls: ['http://127.0.0.1:8000'],
  folder: '/shared/gradus',
} as const;
const parsed = (more: object) => parseSpec({ ...tiny, ...more }, 'run', environments);
const capOf = (algorithm: object) => {
  const stage = parsed({ policy: http, stages: [warmStart, { ...rl, algorithm }] }).stages[1];
  return stage?.kind === 'rl' && 'importanceCap' in stage.algorithm ? stage.algorithm.importanceCap : null;
};

test('a spec without policy, or with the decoder of workers, has none in what workflows read', () => {
  expect(parsed({})).not.toHaveProperty('policy');
  expect(parsed({ policy: { kind: 'onnx' } })).toEqual(parsed({}));
});

describe('the decoder of workers with rounded weights', () => {
  const rounded = (dtype: string, algorithm: object, more: object = {}) => ({
    ...tiny,
    policy: { kind: 'onnx', dtype, ...more },
    stages: [warmStart, { ...rl, algorithm }],
  });

  test('is in what workflows read, with the bound of its gap', () => {
    expect(parsed({ policy: { kind: 'onnx', dtype: 'float32' } })).toEqual(parsed({}));
    expect(parsed({ policy: { kind: 'onnx', dtype: 'int8' } }).policy).toEqual({
      kind: 'onnx',
      dtype: 'int8',
      maxLogprobGap: 0.1,
    });
    const { policy } = parsed(rounded('bfloat16', { kind: 'grpo' }, { maxLogprobGap: 0.02 }));
    expect(policy).toMatchObject({ dtype: 'bfloat16', maxLogprobGap: 0.02 });
  });

  test('has its tokens weighed by importance, with a cap of 2 where the spec says nothing', () => {
    const capOfRounded = (algorithm: object) => parsed(rounded('bfloat16', algorithm)).stages[1];
    expect(capOfRounded({ kind: 'grpo' })).toMatchObject({ algorithm: { importanceCap: 2 } });
    expect(capOfRounded({ kind: 'grpo', importanceCap: 5 })).toMatchObject({
      algorithm: { importanceCap: 5 },
    });
  });

  test('is refused where a method leaves the weights out, or has none', () => {
    expect(problemsOf(rounded('int8', { kind: 'grpo', importanceCap: 0 }))).toEqual([
      expect.stringMatching(
        /^stages\[1\].algorithm.importanceCap: policy.dtype int8 samples with other prob/,
      ),
    ]);
    expect(problemsOf(rounded('bfloat16', { kind: 'gspo' }))).toEqual([
      expect.stringMatching(/^stages\[1\].algorithm.kind: gspo cannot weigh tokens by importance/),
    ]);
    expect(problemsOf(rounded('float32', { kind: 'gspo' }))).toEqual([]);
  });

  test('cuts distributions, for it says which tokens were left', () => {
    const cut = { sampling: { ...tiny.sampling, topK: 20, topP: 0.9 } };
    expect(problemsOf({ ...rounded('int8', { kind: 'grpo' }), ...cut })).toEqual([]);
  });
});

test('servers get adapters where the run trains one, and all weights otherwise', () => {
  expect(parsed({ policy: http }).policy).toMatchObject({
    kind: 'http',
    adapters: false,
    requestTokens: 512,
  });
  expect(parsed({ policy: http, model: { ...tiny.model, lora: {} } }).policy).toMatchObject({
    adapters: true,
  });
});

test('servers of weights in bfloat16 may be further from the learner, and are not given any beside adapters', () => {
  const rounded = { ...http, dtype: 'bfloat16' };
  expect(parsed({ policy: http }).policy).toMatchObject({ tolerance: 0.02 });
  expect(parsed({ policy: rounded }).policy).toMatchObject({ dtype: 'bfloat16', tolerance: 0.05 });
  expect(parsed({ policy: { ...rounded, tolerance: 0.01 } }).policy).toMatchObject({ tolerance: 0.01 });
  expect(problemsOf({ ...tiny, policy: rounded, model: { ...tiny.model, lora: {} } })).toEqual([
    expect.stringMatching(/^policy.dtype: is of weights that servers are given/),
  ]);
});

describe('tokens are weighed by importance, for another engine than the learner has sampled them', () => {
  test('with a cap of 2 where the spec says nothing', () => {
    expect(capOf({ kind: 'grpo' })).toBe(2);
    expect(capOf({ kind: 'dapo' })).toBe(2);
    const rounded = parsed({
      policy: { ...http, dtype: 'bfloat16' },
      stages: [warmStart, { ...rl, algorithm: { kind: 'grpo' } }],
    });
    expect(rounded.stages[1]).toMatchObject({ algorithm: { importanceCap: 2 } });
  });

  test('as the spec says where it does', () => {
    expect(capOf({ kind: 'grpo', importanceCap: 5 })).toBe(5);
    expect(capOf({ kind: 'grpo', importanceCap: 0 })).toBe(0);
  });

  test('and not at all by default with the decoder of workers', () => {
    expect(parsed({}).stages[1]).toMatchObject({ algorithm: { importanceCap: 0 } });
  });
});

test('what makes the log-probs of servers those of a cut distribution is refused', () => {
  expect(problemsOf({ ...tiny, policy: http, sampling: { ...tiny.sampling, topK: 20, topP: 0.9 } })).toEqual([
    expect.stringMatching(/^sampling.topK: needs the decoder of rollout workers/),
    expect.stringMatching(/^sampling.topP: needs the decoder of rollout workers/),
  ]);
});

test.each([
  [{ ...http, urls: [] }, /urls/],
  [{ ...http, urls: ['ftp://127.0.0.1'] }, /must be the address of a server/],
  [{ ...http, server: 'tgi' }, /server/],
  [{ ...http, apiKeyVariable: 'a b' }, /name of an environment variable/],
  [{ kind: 'recorded' }, /run/],
])('%j is refused', (policy, message) => {
  expect(problemsOf({ ...tiny, policy }).join()).toMatch(message);
});

test.each([http, { kind: 'recorded', run: 'earlier' }])(
  'with the policy %j no episode goes on with newer weights than those that it began with',
  (policy) => {
    const of = (onNewWeights: string) => {
      const collect = { kind: 'asynchronous', maxStaleness: 1, onNewWeights };
      const asynchronous = { ...rl, collect, algorithm: { kind: 'grpo', importanceCap: 2 } };
      const model = { ...tiny.model, lora: { rank: 4 } };
      return problemsOf({ ...tiny, policy, model, stages: [warmStart, asynchronous] });
    };
    expect(of('continue').join()).toMatch(/collect.onNewWeights: servers are handed the weights of a group/);
    expect(of('finish')).toEqual([]);
  },
);

test('servers take rollouts ahead of the learner as adapters alone, and by one step', () => {
  const stages = (lag: number) => {
    const collect = { kind: 'pipelined', lag };
    return [warmStart, { ...rl, collect, algorithm: { kind: 'grpo', importanceCap: 2 } }];
  };
  const adapters = { ...tiny.model, lora: { rank: 4 } };
  expect(problemsOf({ ...tiny, policy: http, stages: stages(1) }).join()).toMatch(
    /lag: servers hold the weights of one step at a time/,
  );
  expect(problemsOf({ ...tiny, policy: http, model: adapters, stages: stages(2) }).join()).toMatch(
    /lag: servers hold the adapters of two steps/,
  );
  expect(problemsOf({ ...tiny, policy: http, model: adapters, stages: stages(1) })).toEqual([]);
});

describe('servers of Tinker’s API', () => {
  const { folder: _, ...unstaged } = http;
  const tinker = { ...unstaged, server: 'tinker' };
  const model = { ...tiny.model, lora: { alpha: 32 } };

  test('get adapters and no folder', () => {
    expect(problemsOf({ ...tiny, model, policy: tinker })).toEqual([]);
    expect(parsed({ model, policy: tinker }).policy).toMatchObject({ adapters: true, folder: '' });
  });

  test('are refused without an adapter, or with a folder that nobody would read; others need one', () => {
    expect(problemsOf({ ...tiny, policy: { ...tinker, folder: '/shared' } })).toEqual([
      expect.stringMatching(/^model.lora: is missing: servers of Tinker’s API hold adapters/),
      expect.stringMatching(/^policy.folder: has no effect/),
    ]);
    expect(problemsOf({ ...tiny, policy: unstaged })).toEqual([
      expect.stringMatching(/^policy.folder: is missing/),
    ]);
  });
});
