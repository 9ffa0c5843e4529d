import { expect, test } from 'vitest';
import { whenStopped } from '../../../cli/run-spec.ts';
import { inOneLine } from '../../../cli/watch-run.ts';

test('progress is shown where a terminal does not know how wide it is', () => {
  const line = 'x'.repeat(200);
  expect(inOneLine(line, 120)).toHaveLength(120);
  expect(inOneLine(line, 0)).toHaveLength(80);
  expect(inOneLine(line, undefined)).toHaveLength(80);
});

test('who has joined the servers of another process stops watching, and not the run', () => {
  expect(whenStopped(undefined)).toMatch(/^stopping; the run goes on from here when/);
  expect(whenStopped(123)).toBe(
    'no longer watching; the run goes on with process 123, and the same command shows it again',
  );
});
