import { expect, test } from 'vitest';
import { moleculesPage } from '../../../../../plugins/molecules/report/page/page.ts';
import { embedSvg, text, widthOf, wrap } from '../../../../../svg/elements.ts';
import { makeReport } from '../../../../../plugins/molecules/report/report.ts';
import type { RunRecord } from '../../../../../plugins/molecules/report/report.ts';
import { moleculeRecord } from '../../../../support/molecule-record.ts';
import { xmlProblem } from '../../../../support/well-formed.ts';

const pageOf = (record: RunRecord): string =>
  moleculesPage({ title: 'A <title> & "more"', lines: ['one line'] }, makeReport(record));

const record = moleculeRecord({ steps: 4, perStep: 32, report: 16 });

test('the check of well-formedness knows what is not', () => {
  expect(xmlProblem('<a><b c="1"/>text &amp; more</a>')).toBeUndefined();
  for (const broken of [
    '<a>',
    '<a></b>',
    '<a b=1/>',
    '<a b="1" b="2"/>',
    '<a>&</a>',
    '<a/><a/>',
    '<a b="<"/>',
  ]) {
    expect(xmlProblem(broken), broken).toBeDefined();
  }
});

test('the page is one well-formed SVG with a drawing of each of the best molecules', () => {
  const svg = pageOf(record);
  expect(xmlProblem(svg)).toBeUndefined();
  expect(svg.match(/<svg /g)).toHaveLength(1 + makeReport(record).best.length);
  expect(svg).toContain('A &#60;title&#62; &#38; &#34;more&#34;');
});

test('it needs nothing from elsewhere, and no two elements share an id', () => {
  const svg = pageOf(record);
  const links = [...svg.matchAll(/(?:href|src)=["']([^"']*)|url\(([^)]*)\)|@import|<script|<image/g)];
  expect(links.map(([whole]) => whole).filter((link) => !/["'(]#/.test(link))).toEqual([]);
  expect(svg.replaceAll('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:/);
  const ids = [...svg.matchAll(/\sid=["']([^"']*)/g)].map(([, id]) => id);
  expect(new Set(ids).size).toBe(ids.length);
});

/** Boxes of the texts, by the same generous estimate of widths that the page is laid out with. */
function textBoxes(svg: string) {
  const boxes: { words: string; left: number; right: number; top: number; bottom: number }[] = [];
  const at: [number, number][] = [[0, 0]];
  const skip: boolean[] = [];
  for (const [tag, x, y, attributes, words] of svg.matchAll(
    /<g transform="translate\((\S+) (\S+)\)[^>]*>|<\/g>|<text x="\S+" y="\S+"([^>]*)>(.*?)<\/text>/g,
  )) {
    if (tag === '</g>') {
      at.pop();
      skip.pop();
    } else if (tag.startsWith('<g')) {
      const [dx, dy] = at.at(-1)!;
      at.push([dx + Number(x), dy + Number(y)]);
      skip.push(tag.includes('rotate'));
    } else if (!skip.some(Boolean)) {
      const [, px, py] = /x="(\S+)" y="(\S+)"/.exec(tag)!;
      const size = Number(/font-size="(\d+)"/.exec(attributes!)![1]);
      const shown = words!
        .replace(/<title>.*?<\/title>/, '')
        .replace(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)));
      const width = widthOf(shown, size, attributes!.includes('mono'));
      const anchor = /text-anchor="(\w+)"/.exec(attributes!)![1];
      const [dx, dy] = at.at(-1)!;
      const left = dx + Number(px) - (anchor === 'end' ? width : anchor === 'middle' ? width / 2 : 0);
      const base = dy + Number(py);
      boxes.push({
        words: shown,
        left,
        right: left + width,
        top: base - size * 0.8,
        bottom: base + size * 0.2,
      });
    }
  }
  return boxes;
}

test.each([
  ['a small run', record],
  ['a long one', moleculeRecord({ steps: 60, perStep: 64, report: 64 })],
])('no text of %s lies over another one or leaves the page', (_, of) => {
  const boxes = textBoxes(pageOf(of));
  expect(boxes.length).toBeGreaterThan(80);
  for (const [i, a] of boxes.entries()) {
    expect(a.left >= 0 && a.right <= 1200, a.words).toBe(true);
    for (const b of boxes.slice(i + 1)) {
      const over = a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
      expect(over, `"${a.words}" and "${b.words}"`).toBe(false);
    }
  }
});

test('a run of the fast tier alone has a page without molecules and calibration', () => {
  const [lowest] = record.rungs;
  const svg = pageOf({ ...record, rungs: [lowest!], judge: null, ledger: [] });
  expect(xmlProblem(svg)).toBeUndefined();
  expect(svg).toContain('There was one tier only');
  expect(svg).not.toContain('Best molecules');
});

test('a run that has stopped before anything was judged has a page, too', () => {
  const svg = pageOf({ ...record, training: [], before: [], after: [], ledger: [] });
  expect(xmlProblem(svg)).toBeUndefined();
  expect(svg).not.toMatch(/NaN|Infinity|undefined/);
});

test('an embedded drawing keeps its references, under ids of its own', () => {
  const drawing = `<?xml version='1.0'?>\n<svg version='1.1' xmlns:xlink='http://www.w3.org/1999/xlink' width='9px'><defs><path id='a'/></defs><use xlink:href='#a' fill='url(#b)'/></svg>`;
  expect(embedSvg(drawing, 'm1', 3, 4)).toBe(
    `<svg x="3" y="4" width='9px'><defs><path id="m1-a"/></defs><use href="#m1-a" fill='url(#m1-b)'/></svg>`,
  );
});

test('text is cut to its room, with all of it as a tooltip, and wrapped between words', () => {
  expect(text(0, 0, 'C<C', {})).toContain('C&#60;C</text>');
  const cut = text(0, 0, 'C'.repeat(60), { maxWidth: 100, mono: true });
  expect(cut).toContain(`<title>${'C'.repeat(60)}</title>`);
  expect(cut).toMatch(/>C{5,12}…<\/text>/);
  const lines = wrap('one two three four', 60, 12);
  expect(lines.length).toBeGreaterThan(1);
  expect(lines.join(' ')).toBe('one two three four');
});
