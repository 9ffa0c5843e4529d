import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../support/markdown.ts';
import { longSentences, OLD_WORDS, wordsOf } from '../../support/sentences.ts';

/** The log is a record, and the reference of the spec is made from the schema; adr/ is no page of docs/ itself. */
const OTHERS = new Set(['log.md', 'spec.md']);
const PAGES = [
  'README.md',
  'cli/template/README.md',
  ...readdirSync(path.join(ROOT, 'recipes'))
    .map((name) => `recipes/${name}/README.md`)
    .filter((page) => existsSync(path.join(ROOT, page))),
  ...readdirSync(path.join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md') && !OTHERS.has(name))
    .map((name) => `docs/${name}`),
];

/** What a page says in sentences: without code blocks, tables, comments and pictures; a link is its words. */
const prose = (page: string): string =>
  readFileSync(path.join(ROOT, page), 'utf8')
    .replaceAll(/^```[^]*?^```$/gm, '')
    .replaceAll(/<!--[^]*?-->/g, '')
    .replaceAll(/^ *\|.*$/gm, '')
    .replaceAll(/!\[[^\]]*\]\([^)]*\)/g, '')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    // A full stop within code ends no sentence.
    .replaceAll(/`[^`\n]+`/g, 'code');

test('the README has at most 1,500 words', () => {
  expect(wordsOf(prose('README.md')).length).toBeLessThanOrEqual(1500);
  // Tables and code are read, too.
  expect(readFileSync(path.join(ROOT, 'README.md'), 'utf8').split(/\s+/).length).toBeLessThanOrEqual(1700);
});

test.each(PAGES)('no sentence of %s has more than 35 words', (page) => {
  const long = longSentences(prose(page));
  expect(long).toEqual([]);
});

test.each(PAGES)('%s says things in the words of the field', (page) => {
  expect(prose(page).match(OLD_WORDS)).toBeNull();
});
