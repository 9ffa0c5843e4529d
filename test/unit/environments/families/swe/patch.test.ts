import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { ToolRefusal } from '../../../../../environments/contract/environment.ts';
import { hunksByPath, patchBetween, patched } from '../../../../../environments/families/swe/patch.ts';
import { ratio } from '../../../../../environments/families/swe/sequence-matcher.ts';

/** What some programs take for the end of a line, or of a text. */
const ODD = [
  '\r',
  '\v',
  '\f',
  '\0',
  '\u0085',
  '\u2028',
  '\u2029',
  '\ufeff',
  '\\ No newline at end of file\n',
];
const text = fc
  .array(fc.constantFrom('a\n', 'b\n', '--- c\n', '+++ d\n', '@@ -1 +1 @@\n', '\r\n', 'é', '', ...ODD), {
    maxLength: 12,
  })
  .map((lines) => lines.join(''));
const tree = fc
  .dictionary(fc.constantFrom('a.py', 'b/c.py', 'd.txt'), text)
  .map((files) => new Map(Object.entries(files)));

test('a patch between two trees makes the one of the other, whatever is in their files', () => {
  fc.assert(
    fc.property(tree, tree, (base, other) => {
      const patch = patchBetween(base, other);
      expect(patched(base, patch)).toEqual(other);
      expect([...hunksByPath(patch).keys()].every((path) => base.get(path) !== other.get(path))).toBe(true);
    }),
  );
});

test('a patch that is too long, or names no plain path, is refused', () => {
  const long = Array.from({ length: 9_000 }, (_, i) => `line ${i}\n`).join('');
  expect(() => patchBetween(new Map(), new Map([['a.py', long]]))).toThrow(ToolRefusal);
  // What JSON writes with two characters counts as two: the state of a session is JSON.
  expect(() => patchBetween(new Map(), new Map([['a.py', '"'.repeat(33_000)]]))).toThrow(ToolRefusal);
  expect(() => patchBetween(new Map(), new Map([['../a.py', 'x']]))).toThrow(ToolRefusal);
  expect(() => patchBetween(new Map(), new Map([['a\nb', 'x']]))).toThrow(ToolRefusal);
});

test.each([
  ['a lone surrogate', 'x = "\ud800"\n'],
  ['half a letter at its end', '\u{1f468}'.slice(0, 1)],
])('a text with %s, which no program can read, is refused', (_, text) => {
  for (const base of [new Map(), new Map([['a.py', 'x = ""\n']])])
    expect(() => patchBetween(base, new Map([['a.py', text]]))).toThrow(
      new ToolRefusal('no such change: a.py has half a letter (a lone surrogate)'),
    );
});

test.each([
  ['a file in a file', { 'a.py': 'x', 'a.py/b.py': 'y' }, /a\.py is a folder|a\.py\/b\.py lies in a file/u],
  ['a file in place of a folder', { a: 'x', 'a/b.py': 'y' }, /a is a folder|a\/b\.py lies in a file/u],
])('a tree with %s, which no sandbox can lay out, is refused', (_, files, why) => {
  for (const base of [new Map(), new Map([['a.py', 'x']]), new Map([['a/b.py', 'y']])])
    expect(() => patchBetween(base, new Map(Object.entries(files)))).toThrow(why);
});

// What Python 3.11's difflib says of the same texts, autojunk off.
test.each([
  ['', '', 1],
  ['abcd', 'bcde', 0.75],
  ['private Thread currentThread;', 'private volatile Thread currentThread;', 0.8656716417910447],
  ['qabxcd', 'abycdf', 2 / 3],
  ['-    return a - b\n+    return a + b\n', '-    return a - b\n+    return b - a\n', 0.8888888888888888],
])('%j and %j are as alike as difflib says', (a, b, expected) => {
  expect(ratio(a, b)).toBeCloseTo(expected, 12);
});
