import { cp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pageOf, PAGES, ROOT, targetOf } from './pages.mjs';

// Writes what VitePress builds: the repository's own pages, and one for each file or folder that they link to, so that no
// link leaves the site. A link to nothing stays as it is, and fails the build.

const PICTURES = /\.(?:png|svg)$/;
/** Fences and code within a line are no links. */
const LINK_OR_CODE = /^(`{3,})[^]*?^\1`*$|(?<!`)(`+)(?!`).+?(?<!`)\2(?!`)|\]\(([^)\s]+)\)/gm;

const sourceOf = (target) => `/source/${(target || 'repository').replaceAll('/', '~')}.html`;
const linked = new Set();
const pictures = new Set();

/** A link to plain HTML leaves the site's own pages, which its router has to be told. */
const withTarget = (href) => `](${href})${href.startsWith('/source/') ? '{target="_self"}' : ''}`;

/** A link of a page, as it is on the site. */
function onSite(href, from) {
  const target = targetOf(href, from);
  if (target === null) return href;
  if (PAGES.has(target)) return `${pageOf(target)}${/#.*$/.exec(href)?.[0] ?? ''}`;
  if (PICTURES.test(target)) {
    pictures.add(target);
    return `/${target}`;
  }
  linked.add(target);
  return sourceOf(target);
}

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Plain HTML: there are hundreds of them, and a page of the site each would take a minute of building. */
async function sourcePage(target) {
  const file = path.join(ROOT, target);
  const title = escaped(target || 'The repository');
  const text = (await stat(file)).isDirectory()
    ? (await readdir(file, { withFileTypes: true }))
        .map((one) => (one.isDirectory() ? `${one.name}/` : one.name))
        .join('\n')
    : await readFile(file, 'utf8');
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${title} | Gradus</title>
<style>body { font: 16px sans-serif; margin: 1.5rem } pre { font-size: 0.85rem; line-height: 1.5; overflow-x: auto; tab-size: 2 }</style>
<a href="/">Gradus</a>
<h1>${title}</h1>
<pre tabindex="0">${escaped(text)}</pre>
</html>
`;
}

const folder = path.join(import.meta.dirname, '.pages');

async function write(page, text) {
  const file = path.join(folder, page);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
}

await rm(folder, { recursive: true, force: true });
for (const file of PAGES) {
  const text = await readFile(path.join(ROOT, file), 'utf8');
  const there = text.replaceAll(LINK_OR_CODE, (all, fence, code, href) =>
    href === undefined ? all : withTarget(onSite(href, file)),
  );
  const page = pageOf(file);
  await write(page.endsWith('/') ? `${page}index.md` : `${page}.md`, there);
}
for (const target of linked) await write(`public${sourceOf(target)}`, await sourcePage(target));
for (const picture of pictures) await cp(path.join(ROOT, picture), path.join(folder, 'public', picture));
console.log(`${PAGES.size} pages, ${linked.size} of code, ${pictures.size} pictures`);
