import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { commandLine, SERVERS_ARE_HELD_UP, whenServerIsAway } from '../../../core/installation.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
/** Folders of infra/setup/build-package.ts. */
const PACKED =
  'core spec store workflows activities workers engine environments infra svg plugins runs dashboard cli'.split(
    ' ',
  );

test('in a checkout a person is told the npm script, with arguments behind a "--"', () => {
  expect(commandLine('dev')).toBe('npm run dev');
  expect(commandLine('setup')).toBe('npm run setup');
  expect(commandLine('setup chemistry')).toBe('npm run setup:chemistry');
  expect(commandLine('setup python textworld')).toBe('npm run setup:python -- textworld');
  expect(commandLine('setup sandbox --gvisor')).toBe('npm run setup:sandbox -- --gvisor');
  expect(commandLine('train spec.json')).toBe('npm run gradus -- train spec.json');
});

test('nothing that a package has tells a person of an npm script, which only a checkout has', async () => {
  const texts: string[] = [];
  for (const folder of PACKED) {
    for (const file of await readdir(path.join(ROOT, folder), { recursive: true })) {
      // What only a checkout runs: the demo of molecules, the start of its bundle, and what writes its pages.
      if (
        !/\.(ts|mjs|py)$/.test(file) ||
        /^(molecules\/report\/assert-molecules|setup\/(bootstrap|bundle)|reference)\./.test(file)
      )
        continue;
      const lines = (await readFile(path.join(ROOT, folder, file), 'utf8')).split('\n');
      const messages = lines.filter((line) => line.includes('npm run ') && !/^\s*(\/\/|\/?\*|#)/.test(line));
      texts.push(...messages.map((line) => `${folder}/${file}: ${line.trim()}`));
    }
  }
  // Help of flags, and what makes the words, ask themselves where they are.
  expect(texts.filter((line) => !/^(core\/installation|cli\/stack-flags)\.ts/.test(line))).toEqual([]);
});

test('nobody is told to start servers that are held up by who started the process', () => {
  expect(whenServerIsAway({}, 'TEMPORAL_ADDRESS')).toBe(
    'Start its server with "npm run dev", or correct TEMPORAL_ADDRESS',
  );
  const held = whenServerIsAway({ [SERVERS_ARE_HELD_UP]: '1' }, 'TEMPORAL_ADDRESS');
  expect(held).not.toContain('npm run dev');
  expect(held).toContain('It is started again');
});
