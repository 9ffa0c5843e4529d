import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { builtInEnvironments, loadEnvironments } from '../../../../environments/families/index.ts';

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
    const names = [...(await loadEnvironments([])).keys()];
    expect(names).toEqual(builtInEnvironments.map(({ name }) => name));
    expect(names).toEqual(expect.arrayContaining(['calculator', 'calculator-slow', 'molecules', 'web-shop']));
  });

  test('adds those of a module, one or several', async () => {
    const one = moduleWith(`export default ${whole.replace('NAME', '"one"')}`);
    const two = moduleWith(
      `export default [${whole.replace('NAME', '"two"')}, ${whole.replace('NAME', '"three"')}]`,
    );
    const found = await loadEnvironments([one, two]);
    expect([...found.keys()].slice(builtInEnvironments.length)).toEqual(['one', 'two', 'three']);
  });

  test('adds one of TypeScript that is CommonJS where it lies', async () => {
    const file = join(folder, 'common.cjs');
    const marked = "Object.defineProperty(exports, '__esModule', { value: true });";
    writeFileSync(file, `${marked} exports.default = ${whole.replace('NAME', '"common"')}`);
    expect([...(await loadEnvironments([file])).keys()]).toContain('common');
  });

  const tierVerifier = (code: string): string =>
    `export default ${whole.replace('NAME', '"tiers"').replace('verifiers: []', `verifiers: [${code}]`)}`;
  const subject = `version: '1', cost: { seconds: 1, usd: 0 }, subject: () => ({ x: 1 })`;

  test.each([
    [
      'a function',
      `{ name: 'f', tier: 'simulation', ${subject}, served: { by: 'function', verify: async () => ({ kind: 'scored', score: 1 }) }, limits: { timeoutSeconds: 5 } }`,
    ],
    [
      'workers in another language',
      `{ name: 'p', tier: 'high-fidelity', ${subject}, served: { by: 'pool', pool: 'chemistry' }, interpret: () => ({ kind: 'score', score: 1 }) }`,
    ],
    ['people', `{ name: 'e', tier: 'world', ${subject}, served: { by: 'people' } }`],
  ])(
    'takes a verifier of a higher tier that is served by %s and has no verify of its own',
    async (_, code) => {
      const found = await loadEnvironments([moduleWith(tierVerifier(code))]);
      expect(found.get('tiers')!.verifiers).toHaveLength(1);
    },
  );

  test.each([
    [
      'nobody who serves it',
      `{ name: 'f', tier: 'simulation', ${subject} }`,
      "needs 'subject', 'served' and 'cost'",
    ],
    [
      'no subject',
      `{ name: 'p', version: '1', tier: 'simulation', cost: { seconds: 1, usd: 0 }, served: { by: 'pool', pool: 'x' } }`,
      "needs 'subject', 'served' and 'cost'",
    ],
    [
      'no cost',
      `{ name: 'p', version: '1', tier: 'simulation', subject: () => 1, served: { by: 'pool', pool: 'x' } }`,
      "needs 'subject', 'served' and 'cost'",
    ],
    [
      'a pool without a name',
      `{ name: 'p', tier: 'simulation', ${subject}, served: { by: 'pool' } }`,
      'served.pool',
    ],
    [
      'people before the world tier',
      `{ name: 'e', tier: 'simulation', ${subject}, served: { by: 'people' } }`,
      "people are of the tier 'world'",
    ],
    [
      'no attempts',
      `{ name: 'p', tier: 'simulation', ${subject}, served: { by: 'pool', pool: 'x' }, limits: { maxAttempts: 0 } }`,
      'limits.maxAttempts',
    ],
    [
      'a fault that is no score',
      `{ name: 'p', tier: 'simulation', ${subject}, served: { by: 'pool', pool: 'x' }, faults: { embedding: -1 } }`,
      'faults.embedding',
    ],
    [
      'a fault that is nobody’s',
      `{ name: 'p', tier: 'simulation', ${subject}, served: { by: 'pool', pool: 'x' }, faults: { crashed: 0 } }`,
      'faults.crashed',
    ],
    [
      'a fast tier without verify',
      `{ name: 'f', version: '1', tier: 'fast' }`,
      'a fast verifier needs a function',
    ],
  ])('refuses a verifier with %s', async (_, code, message) => {
    await expect(loadEnvironments([moduleWith(tierVerifier(code))])).rejects.toMatchObject({
      type: 'shape',
      message: expect.stringContaining(message) as string,
    });
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
    [
      'a tool without a schema, by the name of the tool',
      `export default ${whole.replace('NAME', '"x"').replace('tools: []', "tools: [{ name: 'light', description: '', placement: 'inline', effect: 'pure', run: () => '' }]")}`,
      'shape',
      'the tool "light": arguments: expected a zod schema',
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
    ...[
      'timeoutSeconds: Infinity',
      'timeoutSeconds: 3e6',
      'heartbeatSeconds: 0',
      'maxAttempts: 0.5',
      'maxOutputCharacters: NaN',
    ].map((limit) => [
      `a tool with ${limit}`,
      `import { z } from ${JSON.stringify(import.meta.resolve('zod'))};
       const tool = { name: 't', description: '', arguments: z.object({}), placement: 'long', effect: 'pure', run: () => '', limits: { ${limit} } };
       export default ${whole.replace('NAME', '"x"').replace('tools: []', 'tools: [tool]')}`,
      'shape',
      `the tool "t": limits.${limit.split(':')[0]}`,
    ]),
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
