import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../../support/markdown.ts';

const { scripts } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};
const programs = Object.entries(scripts).flatMap(([name, command]) => {
  const program = name.startsWith('setup:') && /--run (\S+\.ts) --$/.exec(command)?.[1];
  return program ? [[name, program] as const] : [];
});

test('every set-up of a part hands its arguments on', () => {
  const parts = Object.keys(scripts).filter((name) => name.startsWith('setup:'));
  expect(programs.map(([name]) => name)).toEqual(parts);
  expect(parts).toContain('setup:torch');
});

test.each(programs)('%s refuses what it does not know, and sets nothing up', (_, program) => {
  const { status, stderr } = spawnSync(process.execPath, ['--import', 'tsx', program, '--nosuch'], {
    cwd: ROOT,
    encoding: 'utf8',
    // It ends by itself; a download would not have.
    timeout: 200_000,
  });
  expect(stderr).toContain('--nosuch');
  expect(status).toBe(1);
});
