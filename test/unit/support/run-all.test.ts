import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { ROOT } from '../../support/markdown.ts';

test('npm test with the path of a test says which command runs it, and runs nothing', () => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', 'test/run-all.ts', 'test/unit/core'],
    { cwd: ROOT, encoding: 'utf8', timeout: 200_000 },
  );
  expect(stderr).toMatch(/takes no test\/unit\/core: "npm run unit -- PATH"/);
  expect(stdout).toBe('');
  expect(status).toBe(2);
});
