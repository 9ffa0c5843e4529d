import path from 'node:path';
import { expect, test } from 'vitest';
import { EnvironmentHost } from '../../../../environments/host/environment-host.ts';

// A process costs half a second and 60 to 90 MB in each worker: there are those that something runs in.

const HOUSES = path.resolve('test/support/houses-module.ts');
const { signal } = new AbortController();

/** Plays the first call of an episode, and asks for the session's last word. */
async function play(host: EnvironmentHost, way: string): Promise<void> {
  const environment = host.environments.get(`house-${way}`)!;
  const ref = { environment: environment.name, split: 'train', level: 1, index: 0 } as const;
  const id = `run/rl/1/0/${way}`;
  const call = { name: 'light', arguments: {} };
  await environment.tasks([ref], { signal });
  const { session, observation } = await environment.call(call, {
    idempotencyKey: `${id}/1`,
    attempt: 1,
    signal,
    session: { ref, id, acts: [] },
  });
  const { seconds: _, ...said } = observation;
  const acts = [{ call, turn: 1, observation: said }];
  const asked = { ref, id, acts, ...(session && { kept: session }) };
  await environment.end(asked, { answer: '', by: 'answer' }, { signal });
}

test('what an environment only folds runs in the process of its tasks, and what holds sessions in one besides', async () => {
  const host = await EnvironmentHost.open({ modules: [HOUSES], keepLoadedMs: 0, log: () => undefined });
  try {
    await play(host, 'fold');
    await expect.poll(() => host.pids().length).toBe(1);
    await play(host, 'replay');
    expect(host.pids()).toHaveLength(2);
  } finally {
    await host.close();
  }
});

test('a process that has only said what its module has ends', async () => {
  const host = await EnvironmentHost.open({ modules: [HOUSES], keepLoadedMs: 0, log: () => undefined });
  try {
    await expect.poll(() => host.pids()).toEqual([]);
    expect(host.environments.has('house-fold')).toBe(true);
  } finally {
    await host.close();
  }
});
