import { expect, test } from 'vitest';
import type { SpecEnvironment } from '../../../core/schema/check.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { environments, problemsOf } from './problems-of.ts';

const tiny = tinySpec({ maxSteps: 2 });
const [warmStart, rl] = tiny.stages;
/** One whose state outlives the calls. */
const house = { ...environments.get('calculator')!, name: 'house', resume: 'fold' as const };
const among = new Map<string, SpecEnvironment>([...environments, [house.name, house]]);
const agent = { command: ['node', 'agent.mjs'] };
const withStage = (more: object) => ({ ...tiny, agent, stages: [warmStart, { ...rl, ...more }] });

test('a spec names an agent, and one without is what it was', () => {
  expect(parseSpec(tiny, 'run', environments)).not.toHaveProperty('agent');
  expect(parseSpec({ ...tiny, agent }, 'run', environments).agent).toEqual({
    command: ['node', 'agent.mjs'],
    model: 'policy',
    timeoutSeconds: 600,
    maxAttempts: 3,
    branches: 'train',
    concurrency: 8,
  });
});

test.each([
  ['neither command nor url', { ...tiny, agent: {} }, /^agent: give either/],
  ['both', { ...tiny, agent: { ...agent, url: 'http://127.0.0.1:4000' } }, /^agent: give either/],
  [
    'a loop that nobody brings',
    { ...tiny, agent: { own: { name: 'third-thought' } } },
    /^agent.own.name: no agent loop called "third-thought" is known here/,
  ],
  ['an empty command', { ...tiny, agent: { command: [] } }, /^agent.command/],
  [
    "a server's variables",
    { ...tiny, agent: { url: 'http://127.0.0.1:4000', env: { A: 'b' } } },
    /^agent.env: is for a command/,
  ],
  [
    'a variable of the gateway',
    { ...tiny, agent: { ...agent, env: { OPENAI_BASE_URL: 'http://elsewhere' } } },
    /^agent.env.OPENAI_BASE_URL: is set by Gradus/,
  ],
  [
    'one that would be handed on',
    { ...tiny, agent: { ...agent, inheritEnv: ['HOME', 'ANTHROPIC_API_KEY'] } },
    /^agent.inheritEnv\[1\]: is set by Gradus/,
  ],
  [
    'a recording',
    { ...tiny, agent, policy: { kind: 'recorded', run: 'other' } },
    /^policy.kind: has recorded/,
  ],
  [
    'a method that takes no branches',
    withStage({ algorithm: { kind: 'dpo' } }),
    /algorithm.kind: dpo does not train episodes with branches[^]*choose grpo, [^]*agent.branches to fail/,
  ],
  ['a tree', withStage({ collect: { kind: 'tree', roots: 4 } }), /collect.kind: an agent cannot go on/],
  [
    'tools drawn at random',
    withStage({ exploration: { toolChoice: 0.1 } }),
    /exploration.toolChoice: draws tools of the environment/,
  ],
  [
    'a look at the weights of what is replayed',
    withStage({ collect: { kind: 'replay' }, algorithm: { kind: 'grpo', importanceCap: 2 } }),
    /collect.minEffectiveSamples: scores tokens, and branches/,
  ],
  [
    'a look at the successes of what is replayed',
    withStage({
      collect: { kind: 'replay', minEffectiveSamples: 0, successes: {} },
      algorithm: { kind: 'grpo', importanceCap: 2 },
    }),
    /collect.successes: scores tokens, and branches/,
  ],
  ['hints', withStage({ algorithm: { kind: 'hindsight', relabel: true } }), /algorithm.kind: puts hints/],
  [
    'a session',
    { ...tiny, agent, evaluation: { tasks: [{ environment: 'house', levels: [1] }], count: 8 } },
    /^evaluation.tasks\[0\].environment: "house" judges what happened in a session/,
  ],
])('%s is refused before anything is spent', (_, spec, why) => {
  expect(problemsOf(spec, among)).toContainEqual(expect.stringMatching(why));
});
