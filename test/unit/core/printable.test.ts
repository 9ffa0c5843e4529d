import { spawnSync } from 'node:child_process';
import * as fc from 'fast-check';
import path from 'node:path';
import { expect, test } from 'vitest';
import { printable } from '../../../core/printable.ts';
import { ROOT } from '../../support/markdown.ts';

test('escape sequences are written out, line feeds and tabs stay', () => {
  expect(printable('\u001b]0;owned\u0007 \u001b[2Ja\tb\nc\r')).toBe(
    '\\u001b]0;owned\\u0007 \\u001b[2Ja\tb\nc\\u000d',
  );
  expect(printable('\u009b31m \u007f')).toBe('\\u009b31m \\u007f');
});

test('what reorders or hides its neighbours is written out', () => {
  expect(printable('a\u202eb\u2066c\u200bd\ufeff')).toBe('a\\u202eb\\u2066c\\u200bd\\ufeff');
});

test('ordinary text of any script is left alone', () => {
  const text = 'Grüße, 你好, שלום, 👩🏽‍🚀'.replaceAll('\u200d', '');
  expect(printable(text)).toBe(text);
});

test('printed JSON reads back as the value that it was', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const shown = printable(JSON.stringify({ text }));
      expect(shown).not.toMatch(/[\u0080-\u009f\u202e\u007f]/);
      expect(JSON.parse(shown)).toEqual({ text });
    }),
  );
});

test('an error that quotes a model reaches the terminal without its escape sequences', () => {
  const script = `
    import { fail } from './cli/fail.ts';
    import { GradusError } from './core/errors.ts';
    fail(new GradusError('tool', 'failed', 'no tool \\u001b[2J\\u202e'));`;
  const { stderr, status } = spawnSync(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', script],
    { cwd: path.resolve(ROOT), encoding: 'utf8' },
  );
  expect(status).toBe(1);
  expect(stderr).toContain('no tool \\u001b[2J\\u202e');
});
