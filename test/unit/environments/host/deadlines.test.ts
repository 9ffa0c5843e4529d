import path from 'node:path';
import { expect, test } from 'vitest';
import type { HostRequest } from '../../../../environments/host/asks.ts';
import { readAnswers } from '../../../../environments/host/answer-shapes.ts';
import { BoundedOutput } from '../../../../environments/host/bounded-output.ts';
import { deadlineMs } from '../../../../environments/host/deadlines.ts';
import { hostedHere } from '../../../../environments/host/hosted-environment.ts';
import { HostProcess } from '../../../../environments/host/host-process.ts';
import { builtInEnvironments } from '../../../../environments/families/index.ts';
import { someSession } from '../../../support/some-session.ts';

const { signal } = new AbortController();
const ask = (kind: HostRequest['kind'], item: unknown): HostRequest =>
  ({ kind, environment: 'calculator', items: [item] }) as HostRequest;
const called = { call: { name: 'calculator', arguments: {} }, session: someSession };
const environments = new Map(builtInEnvironments.map((one) => [one.name, hostedHere(one)]));

test('an ask that is not answered ends its host though the event loop turns, and says which ask it was', async () => {
  const deaths: string[] = [];
  const host = new HostProcess({
    module: path.resolve('test/support/hostile-environments.ts'),
    env: { PATH: process.env['PATH']! },
    memoryBytes: 400 * 2 ** 20,
    loadMs: 60_000,
    variables: {},
    output: new BoundedOutput({ whose: 'a host', write: () => undefined }),
    onLateError: () => undefined,
    onDeath: ({ message }, doing) => deaths.push(`${message}: ${doing.join()}`),
  });
  try {
    await host.up();
    const waits: HostRequest = {
      kind: 'findings',
      environment: 'hostile-tiers',
      items: [{ verifier: 'tier-waits', subject: {} }],
    };
    await expect(host.ask(waits, { signal, blockMs: 10_000, deadlineMs: 1000 })).rejects.toMatchObject({
      kind: 'hung',
      message: 'gave no answer to findings of hostile-tiers in 1.0 s',
    });
    expect(deaths).toEqual([
      'gave no answer to findings of hostile-tiers in 1.0 s: verifier tier-waits of hostile-tiers',
    ]);
  } finally {
    await host.close();
  }
});

test('every ask of every environment has a deadline, but a last word that has limits of its own', () => {
  const calculator = environments.get('calculator')!;
  const kinds: [HostRequest['kind'], unknown][] = [
    ['tasks', {}],
    ['demonstrations', {}],
    ['refusals', called],
    ['calls', called],
    ['endings', { session: someSession }],
    ['closings', someSession],
    ['verdicts', {}],
    ['subjects', {}],
    ['interpretations', {}],
    ['hints', {}],
    ['relabellings', {}],
    ['findings', { verifier: 'x' }],
    ['presentations', {}],
  ];
  for (const [kind, item] of kinds) {
    const ms = deadlineMs(ask(kind, item), calculator);
    expect(ms, kind).toBeGreaterThan(120_000);
    // A verifier of a tier may take an hour by itself.
    expect(ms, kind).toBeLessThan(kind === 'findings' ? 3_800_000 : 400_000);
  }
  const ending = ask('endings', { session: someSession });
  expect(deadlineMs(ending, environments.get('swe-small'))).toBe(Infinity);
});

test('an answer is taken for what was asked only in the shape of that', () => {
  const observation = { text: '5' };
  const read = (kind: HostRequest['kind'], ...answers: unknown[]) => readAnswers(kind, 1, answers);
  const good: [HostRequest['kind'], unknown][] = [
    ['calls', { observation }],
    [
      'calls',
      { observation: { ...observation, done: true, reward: 1, seconds: 0.1 }, session: { state: [1] } },
    ],
    ['verdicts', [{ verifier: 'x', version: '1', score: null, evidence: 'none' }]],
    ['tasks', { prompt: 'What is 2+3?' }],
    ['refusals', null],
    ['closings', null],
  ];
  for (const [kind, ok] of good) expect(read(kind, { ok })).toEqual({ value: [{ ok }] });
  const bad: [HostRequest['kind'], unknown][] = [
    ['calls', { observation: { text: 5 } }],
    ['calls', { observation: { ...observation, done: 'yes' } }],
    ['calls', { observation, more: 1 }],
    ['verdicts', [{ verifier: 'x', version: '1', score: 2 }]],
    ['verdicts', { score: 1 }],
    ['tasks', 'a prompt'],
    ['findings', { kind: 'scored', score: '0.5' }],
  ];
  for (const [kind, ok] of bad) {
    expect(read(kind, { ok })).toMatchObject({
      fault: expect.stringContaining(`no answer to ${kind}`) as string,
    });
  }
  expect(read('calls', null)).toHaveProperty('fault');
  expect(read('calls', { error: { boundary: 'moon' } })).toHaveProperty('fault');
  expect(read('calls')).toEqual({ fault: 'gave 0 answers to 1 asks' });
});
