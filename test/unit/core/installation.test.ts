import { expect, test } from 'vitest';
import { commandLine } from '../../../core/installation.ts';

test('in a checkout a person is told the npm script, with arguments behind a "--"', () => {
  expect(commandLine('dev')).toBe('npm run dev');
  expect(commandLine('setup')).toBe('npm run setup');
  expect(commandLine('setup chemistry')).toBe('npm run setup:chemistry');
  expect(commandLine('setup python textworld')).toBe('npm run setup:python -- textworld');
});
