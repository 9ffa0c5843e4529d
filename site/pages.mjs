import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';

// Which pages of the repository are on the site, and where. Paths are below the repository.

export const ROOT = path.resolve(import.meta.dirname, '..');

const below = (folder, pattern) =>
  readdirSync(path.join(ROOT, folder), { recursive: true })
    .filter((name) => pattern.test(String(name)))
    .map((name) => path.posix.join(folder, String(name)));

export const PAGES = new Set([
  'README.md',
  'CONTRIBUTING.md',
  'site/home.md',
  ...below('docs', /\.md$/),
  ...below('recipes', /^[^/]+\/README\.md$/),
]);

const NAMED = { 'README.md': '/start', 'CONTRIBUTING.md': '/contributing', 'site/home.md': '/' };

/** Where a page is on the site. */
export function pageOf(file) {
  const recipe = /^recipes\/([^/]+)\/README\.md$/.exec(file);
  if (recipe) return `/recipes/${recipe[1]}`;
  return NAMED[file] ?? `/${file.replace(/^docs\//, '').replace(/README\.md$|\.md$/, '')}`;
}

/** What a link of a page leads to; null where that is not in the repository. A folder with a page is that page. */
export function targetOf(href, from) {
  if (/^(?:[a-z]+:|#|\/)/.test(href)) return null;
  const target = path.join(path.dirname(from), decodeURI(href.replace(/#.*$/, ''))).replace(/\/$/, '');
  if (!existsSync(path.join(ROOT, target))) return null;
  const readme = path.join(target, 'README.md');
  if (PAGES.has(readme) && target !== '.') return readme;
  return target === '.' ? '' : target;
}
