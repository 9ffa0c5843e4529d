import { expect, test } from 'vitest';
import { runCommand } from '../../../infra/setup/command.ts';
import { ROOT } from '../../support/markdown.ts';

test('the check says politely where there is no GPU, and that is no failure', async () => {
  const { code, stdout, stderr } = await runCommand(
    process.execPath,
    ['--import', 'tsx', 'bench/gpu/check.ts'],
    { cwd: ROOT, env: { ...process.env, GRADUS_TENSORFLOW_GPU: '0' } },
  );
  expect(code).toBe(0);
  expect(stdout).toBe('');
  expect(stderr).toContain('nothing to check');
});
