import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { ToolCall } from '../../../../core/episode/episode.ts';
import type { Incident } from '../../../../core/episode/incidents.ts';
import { calculatorEnvironment } from '../../../../environments/families/calculator/environment.ts';
import { calculatorTool } from '../../../../environments/families/calculator/tool.ts';
import { environmentFactsOf } from '../../../../environments/host/facts.ts';
import { hostedHere } from '../../../../environments/host/hosted-environment.ts';
import { builtInEnvironments } from '../../../../environments/families/index.ts';
import { readMolecule } from '../../../../environments/families/molecules/rdkit.ts';
import { someSession } from '../../../support/some-session.ts';

const { signal } = new AbortController();
const call: ToolCall = { name: 'calculator', arguments: { expression: '2+3' } };
const context = { idempotencyKey: 'k', attempt: 1, signal, session: someSession };
const ref = { environment: 'calculator', split: 'train', level: 1, index: 0 } as const;

test('an environment is prepared once, before the first of its functions, and not on the time of a call', async () => {
  const done: string[] = [];
  const base = calculatorEnvironment('calculator', {
    ...calculatorTool,
    limits: { timeoutSeconds: 0.1, maxAttempts: 1 },
    run: (args, given) => {
      done.push('run');
      return calculatorTool.run(args as never, given);
    },
  });
  const environment = hostedHere({
    ...base,
    task: (asked) => {
      done.push('task');
      return base.task(asked);
    },
    prepare: async () => {
      await wait(300);
      done.push('prepare');
    },
  });
  expect(done).toEqual([]);
  const [tasks, { observation }] = await Promise.all([
    environment.tasks([ref], { signal }),
    environment.call(call, context),
  ]);
  expect(tasks).toEqual([{ prompt: expect.any(String) as string }]);
  expect(observation.text).toBe('5');
  await environment.call(call, context);
  expect(done).toEqual(['prepare', 'task', 'run', 'run']);
});

test('an environment that could not be prepared says so for each item, and is prepared at the next ask', async () => {
  let attempts = 0;
  const environment = hostedHere({
    ...calculatorEnvironment(),
    prepare: async () => {
      if (++attempts === 1) throw new Error('the disk is away');
    },
  });
  const incidents: Incident[] = [];
  const incident = (one: Incident) => void incidents.push(one);
  const refused = {
    boundary: 'environment',
    type: 'prepare',
    retryable: true,
    message: 'prepare() of calculator (this process) failed: the disk is away',
  };
  const asked = environment.tasks([ref, { ...ref, index: 1 }], { signal, incident });
  expect(await asked).toMatchObject([refused, refused]);
  expect(incidents).toHaveLength(2);
  expect(await environment.tasks([ref], { signal })).toEqual([{ prompt: expect.any(String) as string }]);
});

test('the facts of the built-in environments are known without RDKit, which is there when molecules are judged', async () => {
  const facts = builtInEnvironments.map((environment) => environmentFactsOf(environment, 'Gradus itself'));
  const molecules = facts.find(({ name }) => name === 'molecules')!;
  expect(molecules.taskCounts.train).toEqual({ 1: 'endless', 2: 'endless', 3: 'endless', 4: 'endless' });
  expect(molecules.tools.map(({ name }) => name)).toEqual(['validate', 'describe', 'estimate']);
  expect(() => readMolecule('OCC')).toThrow('RDKit is not loaded');

  const hosted = hostedHere(builtInEnvironments.find(({ name }) => name === 'molecules')!);
  const candidate = {
    ref: { ...ref, environment: 'molecules' },
    episode: { turns: [], status: { kind: 'answered', answer: 'OCC' } as const },
  };
  expect(await hosted.verdicts(['molecule'], [candidate], { signal })).toMatchObject([
    [{ verifier: 'molecule', score: expect.any(Number) as number }],
  ]);
});
