import { expect, test } from 'vitest';
import { runCommand } from '../../../infra/setup/command.ts';
import { ROOT } from '../../support/markdown.ts';

const gradus = (name: string) =>
  runCommand(process.execPath, ['--import', 'tsx', 'cli/gradus.ts', name], { cwd: ROOT });

test.each([
  ['status', 'runs'],
  ['show', 'why RUN'],
  ['kill', 'stop RUN'],
])('who writes %s, as elsewhere, hears what it is called here', async (name, ours) => {
  const { code, stderr } = await gradus(name);
  expect(code).toBe(1);
  expect(stderr).toContain(`unknown command '${name}'\n(Did you mean ${ours}?)`);
});
