import { expect, test } from 'vitest';
import { compareVersions, findOnPath, runCommand, tailOf } from '../../../../infra/setup/command.ts';

test('versions are ordered by their numbers', () => {
  expect(compareVersions('go1.26.8', '1.26.8')).toBe(0);
  expect(compareVersions('1.10', '1.9.3')).toBeGreaterThan(0);
  expect(compareVersions('1.1', '1.1.1')).toBeLessThan(0);
});

test('an executable is found on PATH, and its absence said', async () => {
  expect(await findOnPath('sh')).toMatch(/\/sh$/);
  expect(await findOnPath('sh', { PATH: '/nowhere' })).toBeUndefined();
});

test('a command gives its exit code and both outputs', async () => {
  const script = 'console.log("out"); console.error("err"); process.exit(3)';
  expect(await runCommand(process.execPath, ['-e', script])).toEqual({
    code: 3,
    stdout: 'out\n',
    stderr: 'err\n',
  });
});

test('the tail is the last lines', () => {
  expect(tailOf('a\nb\nc\n', 2)).toBe('b\nc');
});
