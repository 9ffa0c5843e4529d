import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from '../../support/markdown.ts';

const pages = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync(path.join(ROOT, 'recipes'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => path.join('recipes', file)),
  ...readdirSync(path.join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => path.join('docs', file)),
];
const read = (page: string): string => readFileSync(path.join(ROOT, page), 'utf8');
/** Code is full of brackets that are no links. */
const withoutCode = (text: string): string =>
  text.replaceAll(/^```[^]*?^```$/gm, '').replaceAll(/`[^`\n]*`/g, '');

/** The anchor that a heading is known by. */
const anchorOf = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{Letter}\p{Number} _-]/gu, '')
    .replaceAll(' ', '-');
const anchorsOf = (page: string): string[] =>
  [...withoutCode(read(page)).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading!));

describe.each(pages)('%s', (page) => {
  const links = [...withoutCode(read(page)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!);

  test('links to files and headings that are there', () => {
    for (const link of links.filter((target) => !/^https?:/.test(target))) {
      const [file, anchor] = link.split('#') as [string, string?];
      const target = file === '' ? page : path.join(path.dirname(page), file);
      expect(existsSync(path.join(ROOT, target)), `${page} links to ${link}`).toBe(true);
      if (anchor !== undefined) expect(anchorsOf(target), `${page} links to ${link}`).toContain(anchor);
    }
  });
});

test('what the README links to is in the package, too, but for sources, which the package has compiled', () => {
  const { files } = JSON.parse(read('package.json')) as { files: string[] };
  // npm packs the licence without being told.
  const packed = ['LICENSE', ...files.map((file) => file.split('/')[0]!)];
  const links = [...withoutCode(read('README.md')).matchAll(/\]\(([^)#\s][^)\s]*)\)/g)].map(
    ([, target]) => target!,
  );
  const elsewhere = links.filter((target) => !/^https?:|^environments\//.test(target));
  expect(elsewhere.filter((target) => !packed.includes(target.split(/[/#]/)[0]!))).toEqual([]);
});

test('every decision has its number in the index, which leads to its page or to where it was merged', () => {
  const names = readdirSync(path.join(ROOT, 'docs/adr')).filter((name) => name !== 'README.md');
  const index = read('docs/adr/README.md');
  const lines = [...index.matchAll(/^\| (\d{4}) +\|.*\]\(([^)]+)\)/gm)].map(([, number, target]) => ({
    number: number!,
    target: target!,
  }));
  // Branches take numbers before they are merged, so that one may be missing for a while.
  const numbers = lines.map(({ number }) => Number(number));
  expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b));
  for (const name of names) {
    expect(name).toMatch(/^\d{4}-[a-z0-9-]+\.md$/);
    expect(read(path.join('docs/adr', name))).toMatch(/^# \d{4}: .+\n\n\d{4}-\d{2}-\d{2}\n/);
    expect(lines).toContainEqual({ number: name.slice(0, 4), target: name });
  }
  // A merged decision is found on its page by its number.
  for (const { number, target } of lines.filter((line) => !names.includes(line.target))) {
    const page = path.join('docs/adr', target.split('#')[0]!);
    expect(read(page), `${page} has ${number}`).toContain(`(${number})`);
  }
});

test('what code and pages cite as ADR NNNN is in the index', () => {
  const args = ['grep', '-hoE', String.raw`(ADR |adr/)[0-9]{4}`, '--', '*.ts', '*.tsx', '*.py', '*.md'];
  const cited = execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  const index = read('docs/adr/README.md');
  for (const number of new Set(cited.map((text) => text.slice(-4)))) expect(index).toContain(`| ${number} `);
});

test('the tree of the architecture names the folders that are there', () => {
  const tree = [...read('docs/architecture.md').matchAll(/^([a-z]+)\/ {2,}\S/gm)].map(
    ([, folder]) => folder!,
  );
  // What git ignores, such as a package that was built, is nobody's folder.
  const args = ['ls-files', '--cached', '--others', '--exclude-standard'];
  const files = execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  const folders = files.flatMap((file) => /^([^./][^/]*)\//.exec(file)?.[1] ?? []);
  expect(tree.toSorted()).toEqual([...new Set(folders)].toSorted());
});
