import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { expect, test } from 'vitest';

const RUN = path.resolve(import.meta.dirname, '../../../bench/run.ts');

function bench(...args: string[]) {
  return spawnSync(process.execPath, ['--import', 'tsx', RUN, ...args], { encoding: 'utf8' });
}

test('an unknown benchmark is refused with the names of those that there are, and nothing on stdout', () => {
  const { status, stdout, stderr } = bench('orchestra');
  expect(status).not.toBe(0);
  expect(stdout).toBe('');
  expect(stderr).toMatch(/'orchestra'.*rollout, learner, orchestration, .*engine:decode, .*all/);
});

test('a number of runs that is none is refused', () => {
  const { status, stderr } = bench('rollout', '--runs', '0');
  expect(status).not.toBe(0);
  expect(stderr).toMatch(/--runs.*1 or more/);
});

test('a case that a benchmark does not have is refused with the names of those that it has', () => {
  const { status, stdout, stderr } = bench('methods', '--only', 'grpo,gropo');
  expect(status).not.toBe(0);
  expect(stdout).toBe('');
  expect(stderr).toMatch(/"gropo": grpo, dapo, /);
});

test('a case is refused by every benchmark with other cases, and by those without any', () => {
  const families = bench('families', '--quick', '--only', 'nosuch');
  expect(families.status).not.toBe(0);
  expect(families.stderr).toMatch(/there is no case "nosuch": tool-math, /);
  expect(families.stderr).not.toMatch(/\n +at /);
  const tokens = bench('tokens', '--quick', '--only', 'nosuch');
  expect(tokens.status).not.toBe(0);
  expect(tokens.stderr).toMatch(/tokens has no cases for --only; these have some: methods, claims, /);
});

test('seeds are chosen for recipes alone, each once, and not beside a number of runs', () => {
  const twice = bench('recipes', '--seed', '11,11');
  expect(twice.status).not.toBe(0);
  expect(twice.stderr).toMatch(/--seed.*different whole numbers from 0/);
  const both = bench('recipes', '--seed', '11', '--runs', '2');
  expect(both.status).not.toBe(0);
  expect(both.stderr).toMatch(/--seed.*cannot be used with.*--runs/);
  const other = bench('hacking', '--quick', '--seed', '11');
  expect(other.status).not.toBe(0);
  expect(other.stdout).toBe('');
  expect(other.stderr).toMatch(/hacking has no seeds to choose from/);
});
