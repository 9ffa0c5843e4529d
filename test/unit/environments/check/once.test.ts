import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { checkEnvironments } from '../../../../environments/check/check.ts';
import type { CheckReport, CheckOptions } from '../../../../environments/check/check.ts';

const MODULE = path.resolve(import.meta.dirname, '../../../support/once-environments.ts');

let folder: string;
let log: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-once-'));
  log = path.join(folder, 'sent');
  vi.stubEnv('SENT_TO', log);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

/** What was found, and the lines that calls of tools with an effect left. */
async function checked(options: CheckOptions): Promise<CheckReport & { sent: string[] }> {
  await writeFile(log, '');
  const found = await checkEnvironments([MODULE], { tasks: 8, ...options });
  const sent = (await readFile(log, 'utf8')).split('\n').filter((line) => line !== '');
  return { ...found, sent };
}

describe('a tool that must be called once only', () => {
  let stubbed: Awaited<ReturnType<typeof checked>>;
  beforeAll(async () => {
    stubbed = await checked({});
  });
  const of = (name: string) => stubbed.environments.find((environment) => environment.name === name)!;
  const said = (name: string) =>
    stubbed.findings
      .filter(({ environment }) => environment === name)
      .map(({ is, what }) => `${is}: ${what}`);

  test('is not called by a check, and the report counts the calls that were left out', () => {
    expect(stubbed.sent).toEqual([]);
    expect(of('mails').onceCalls).toEqual({ send: { performed: 0, stubbed: 36 } });
    expect(of('told-mails').onceCalls).toEqual({ send: { performed: 0, stubbed: 36 } });
    expect(of('orders').onceCalls).toEqual({ order: { performed: 0, stubbed: 68 } });
  });

  test('that a demonstration calls without its observation is an error: a supervised stage would stop there', () => {
    expect(said('mails')).toEqual([
      'error: the expert calls send, which a supervised stage does not call, without an `observation` (train, level 1, index 0, way 0) (and 15 more)',
    ]);
    expect(said('told-mails')).toEqual([]);
    expect(said('orders')).toEqual([]);
  });

  test('of sessions that make their calls again is an error', () => {
    expect(said('orders-again')[0]).toContain(
      'error: order must be called once only, and sessions that come back by replay make their calls again',
    );
  });

  test('leaves episodes unjudged where what follows depends on it, and the report says so', () => {
    expect(of('mails').notChecked).toEqual([
      'verdicts of 16 episodes, in which once tools were not called (--perform-once calls them)',
    ]);
    expect(of('orders').notChecked).toEqual([
      'verdicts of 16 episodes, in which once tools were not called (--perform-once calls them)',
    ]);
    expect(of('told-mails').notChecked).toEqual([]);
  });
});

test('where it is asked for, each episode calls its once tools a single time, and is judged', async () => {
  const { environments, findings, sent } = await checked({
    performOnce: true,
    environments: ['mails', 'orders'],
  });
  expect(sent.filter((line) => line === 'send')).toHaveLength(16);
  expect(sent.filter((line) => line === 'order')).toHaveLength(16);
  const [mails, orders] = environments;
  expect(mails!.onceCalls).toEqual({ send: { performed: 16, stubbed: 18 } });
  expect(orders!.onceCalls).toEqual({ order: { performed: 16, stubbed: 34 } });
  expect(findings.filter(({ environment }) => environment === orders!.name)).toEqual([]);
  expect(orders!.notChecked).toEqual([]);
});
