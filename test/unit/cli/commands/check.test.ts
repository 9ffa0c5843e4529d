import path from 'node:path';
import { expect, test } from 'vitest';
import { assertModule } from '../../../../cli/commands/check.ts';

const FOLDER = path.resolve(import.meta.dirname, '../../../../cli/template');

test('what is no file is answered with the nearest name', async () => {
  await expect(assertModule('calculater', FOLDER)).rejects.toThrow(
    'there is no file calculater; did you mean "calculator"?',
  );
  await expect(assertModule('textwrld', FOLDER)).rejects.toThrow('did you mean "textworld"?');
  await expect(assertModule('calculator', FOLDER)).rejects.toThrow('calculator is built in');
});

test('files are taken, without their ending, too, and the names of ready modules', async () => {
  await assertModule('environment.ts', FOLDER);
  await assertModule('./environment', FOLDER);
  await assertModule('textworld', FOLDER);
});
