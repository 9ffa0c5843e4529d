import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import manifest from '../../../../package.json' with { type: 'json' };

const FILE = path.resolve(import.meta.dirname, '../../../../infra/setup/node-version.mjs');
const { nodeProblem } = (await import(pathToFileURL(FILE).href)) as {
  nodeProblem: (version: string) => string | null;
};

test('the versions of Node.js that set-up takes are those that package.json names', () => {
  expect(manifest.engines.node).toBe('>=20.10 <25');
  for (const good of ['20.10.0', '20.20.2', '21.0.0', '22.1.0', '24.99.1'])
    expect(nodeProblem(good)).toBeNull();
  for (const bad of ['18.20.0', '20.0.0', '20.9.9', '25.0.0']) {
    expect(nodeProblem(bad)).toBe(
      `Gradus runs on Node.js 20.10 to 24 and this is ${bad}. ` +
        'Install one of these (22 is a good choice) and run the command again.',
    );
  }
});
