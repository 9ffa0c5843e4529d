import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { actsOf } from '../../../../../core/episode/acts.ts';
import type { EpisodeSession, ToolCall, Turn } from '../../../../../core/episode/episode.ts';
import { GradusError } from '../../../../../core/errors.ts';
import { EnvironmentHost } from '../../../../../environments/host/environment-host.ts';
import { serveHouses } from '../../../../support/house-server.ts';
import { WAYS } from '../../../../support/houses.ts';

// Real hosts, ended by SIGKILL in the middle of calls: each way to keep a session does what it says.

const scratch = mkdtempSync(path.join(tmpdir(), 'gradus-houses-'));
const pidFile = path.join(scratch, 'pid');
const hold = path.join(scratch, 'hold');
let server: Awaited<ReturnType<typeof serveHouses>>;
let host: EnvironmentHost;

beforeAll(async () => {
  server = await serveHouses();
  process.env['HOUSES_PID'] = pidFile;
  process.env['HOUSES_GATE'] = hold;
  process.env['HOUSES_MS'] = '1';
  process.env['HOUSES_URL'] = server.url;
  host = await EnvironmentHost.open({
    modules: [path.resolve('test/support/houses-module.ts')],
    variables: ['HOUSES_PID', 'HOUSES_GATE', 'HOUSES_MS', 'HOUSES_URL'],
    log: () => undefined,
  });
});
afterAll(async () => {
  await host?.close();
  server?.close();
  for (const name of ['HOUSES_PID', 'HOUSES_GATE', 'HOUSES_MS']) delete process.env[name];
  delete process.env['HOUSES_URL'];
  rmSync(scratch, { recursive: true, force: true });
});

const { signal } = new AbortController();
const go = (room: string): ToolCall => ({ name: 'go', arguments: { room } });
const light: ToolCall = { name: 'light', arguments: {} };
const look: ToolCall = { name: 'look', arguments: {} };
const CALLS = [look, light, go('kitchen'), light, go('attic'), look, light];

/** Plays the calls; the process that has a call named by `kills` is killed in the middle of it. */
async function play(way: string, id: string, kills: readonly number[]) {
  const environment = host.environments.get(`house-${way}`)!;
  const turns: Pick<Turn, 'action' | 'observation'>[] = [];
  let kept: EpisodeSession | undefined;
  const session = () => ({
    ref: { environment: environment.name, split: 'train' as const, level: 1, index: 0 },
    id,
    acts: actsOf(turns, environment.tools),
    kept,
  });
  for (const [n, call] of CALLS.entries()) {
    rmSync(pidFile, { force: true });
    if (kills.includes(n)) writeFileSync(hold, '');
    const calling = attempts(() =>
      environment.call(call, { idempotencyKey: `${id}/${n}`, attempt: 1, signal, session: session() }),
    );
    if (kills.includes(n)) {
      calling.catch(() => undefined);
      await expect.poll(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8')).toBeTruthy();
      process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGKILL');
      rmSync(hold);
    }
    const { observation, session: after } = await calling;
    kept = after ?? kept;
    const { seconds: _, ...said } = observation;
    turns.push({ action: { kind: 'call', call }, observation: said });
  }
  const ended = await environment.end(session(), { answer: null, by: 'environment' }, { signal });
  return { observations: turns.map(({ observation }) => observation), ended };
}

/** As a rollout has them: what may be mended is tried again. */
async function attempts<T>(call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (attempt === 5 || !(error instanceof GradusError && error.retryable)) throw error;
    }
  }
}

describe.each(Object.keys(WAYS))('a session that is kept by %s', (way) => {
  test('does what it says when its host is killed in the middle of calls', async () => {
    const alone = await play(way, `run/${way}/alone`, []);
    expect(alone.ended).toEqual({ info: { lit: [0, 1, 2] } });
    expect(alone.observations.at(-1)).toMatchObject({
      text: 'lit the attic\n[image image/png]',
      reward: 1,
      done: true,
      images: [{ type: 'image' }],
    });
    const killed = play(way, `run/${way}/killed`, [0, 3]);
    if (way === 'pin')
      await expect(killed).rejects.toMatchObject({ boundary: 'environment', type: 'session-lost' });
    else expect(await killed).toEqual(alone);
    if (way === 'reattach') expect(server.houses.houses.size).toBe(0);
  });
});
