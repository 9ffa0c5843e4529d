import { beforeAll, expect, test } from 'vitest';
import { runClaims } from '../../../store/run/run-claim.ts';
import { runCommand } from '../../../infra/setup/command.ts';
import { openTestStore } from '../../support/test-store.ts';
import { ROOT } from '../../support/markdown.ts';

const { server, store } = await openTestStore();
beforeAll(async () => {
  await store.putIfAbsent('runs/my-run/run.json', runClaims, { spec: null });
});

const gradus = (...args: string[]) =>
  runCommand(process.execPath, ['--import', 'tsx', 'cli/gradus.ts', ...args], {
    env: server.environment(),
    cwd: ROOT,
  });

test.each([
  ['checkpoints', 'my-rum'],
  ['ledger', 'my-rum'],
  ['metrics', 'my-rum'],
  ['export', 'my-rum', '--to', 'nowhere'],
])('%s of a run that is not there fails and says so', async (...args) => {
  const { code, stderr } = await gradus(...args);
  expect(code).toBe(1);
  expect(stderr).toMatch(/no run "my-rum".*did you mean "my-run"|the run "my-rum" has no checkpoint/s);
});

test('a command that reads leaves the store as it is', async () => {
  const before = await store.list('');
  const { code, stdout } = await gradus('checkpoints', 'my-run');
  expect(code).toBe(0);
  expect(stdout).toContain('my-run has no checkpoint');
  expect(await store.list('')).toEqual(before);
});

test('each command says what it takes', async () => {
  for (const name of [
    'checkpoints',
    'ledger',
    'metrics',
    'review',
    'generate',
    'reverify',
    'import',
    'export',
  ]) {
    const { code, stdout } = await gradus(name, '--help');
    expect(code, name).toBe(0);
    expect(stdout, name).toContain(`Usage: gradus ${name} `);
  }
});

test.each([
  'checkpoints',
  'ledger',
  'metrics',
  'review show',
  'review nonsense',
  'export my-run',
  'nonsense',
])('gradus %s, which lacks something or is none, says where help is', async (args) => {
  const { code, stderr } = await gradus(...args.split(' '));
  expect(code).toBe(1);
  expect(stderr).toMatch(/^error: .*\n\(--help lists commands and options\)/);
});
