import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { builtInEnvironments, loadEnvironments } from '../../../environments/index.ts';

const folder = mkdtempSync(join(tmpdir(), 'gradus-environments-'));
afterAll(() => rmSync(folder, { recursive: true }));

const whole = `{ name: NAME, levels: [1], tools: [], verifiers: [], task: () => ({}), demonstrate: () => ({}), taskCount: () => 1 }`;
let count = 0;
function moduleWith(code: string): string {
  const path = join(folder, `module-${count++}.mjs`);
  writeFileSync(path, code);
  return path;
}

describe('loadEnvironments', () => {
  test('has the built-in environments', async () => {
    expect([...(await loadEnvironments([])).keys()]).toEqual(['calculator', 'calculator-slow', 'molecules']);
    expect(builtInEnvironments.map(({ name }) => name)).toEqual([
      'calculator',
      'calculator-slow',
      'molecules',
    ]);
  });

  test('adds those of a module, one or several', async () => {
    const one = moduleWith(`export default ${whole.replace('NAME', '"one"')}`);
    const two = moduleWith(
      `export default [${whole.replace('NAME', '"two"')}, ${whole.replace('NAME', '"three"')}]`,
    );
    const found = await loadEnvironments([one, two]);
    expect([...found.keys()].slice(builtInEnvironments.length)).toEqual(['one', 'two', 'three']);
  });

  test.each([
    [
      'a name that is taken',
      `export default ${whole.replace('NAME', '"calculator"')}`,
      'duplicate',
      'rename one',
    ],
    ['no default export', 'export const x = 1', 'shape', 'no default export'],
    [
      'a missing part',
      `export default ${whole.replace('NAME', '"x"').replace('levels: [1], ', '')}`,
      'shape',
      'levels',
    ],
    ['something else', 'export default 7', 'shape', 'is not an environment'],
    [
      'an unsafe tool',
      `import { z } from 'zod'; const tool = { name: 't', description: '', arguments: z.object({}), placement: 'inline', effect: 'once', run: () => '' };
       export default ${whole.replace('NAME', '"x"').replace('tools: []', 'tools: [tool]')}`.replace(
        "'zod'",
        JSON.stringify(import.meta.resolve('zod')),
      ),
      'shape',
      'placement',
    ],
    ['code that fails', 'throw new Error("boom")', 'module', 'boom'],
  ])('refuses %s', async (_, code, type, message) => {
    await expect(loadEnvironments([moduleWith(code)])).rejects.toMatchObject({
      name: 'GradusError',
      boundary: 'environment',
      type,
      message: expect.stringContaining(message) as string,
    });
  });

  test('refuses a path that is not there', async () => {
    await expect(loadEnvironments([join(folder, 'nothing.mjs')])).rejects.toMatchObject({ type: 'module' });
  });
});
