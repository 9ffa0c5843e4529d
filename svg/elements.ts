import { printable } from '../core/printable.ts';

/** Pieces of an SVG page, as text. Colours are classes of its style, so that a dark desktop gets dark ones. */

/** For text and for values in quotes; what would hide or reorder its neighbours is written out. */
export const escapeXml = (text: string): string =>
  printable(text).replace(/[<>&"']/g, (char) => `&#${char.codePointAt(0)};`);

/** Two decimals are enough for a screen. */
const n = (value: number): string => String(Number(value.toFixed(2)));

export interface TextOptions {
  size?: number;
  anchor?: 'start' | 'middle' | 'end';
  className?: string;
  bold?: boolean;
  /** Cut to so many pixels, with the whole text as a tooltip. */
  maxWidth?: number;
  mono?: boolean;
}

export function text(x: number, y: number, content: string, options: TextOptions = {}): string {
  const { size = 13, anchor = 'start', className = 'ink', bold = false, mono = false, maxWidth } = options;
  const shown = maxWidth === undefined ? content : cut(content, maxWidth, size, mono);
  const title = shown === content ? '' : `<title>${escapeXml(content)}</title>`;
  const classes = `${className}${bold ? ' bold' : ''}${mono ? ' mono' : ''}`;
  return `<text x="${n(x)}" y="${n(y)}" font-size="${size}" text-anchor="${anchor}" class="${classes}">${title}${escapeXml(shown)}</text>`;
}

/** How wide a text will be at most, pixels: fonts differ, so on the safe side. */
export function widthOf(content: string, size: number, mono = false): number {
  const em = (char: string): number => {
    if (mono) return 0.62;
    if (/[ilIj.,:;|'!()[\]ft ]/.test(char)) return 0.36;
    return /[mwMW@%—→±≥≈]/.test(char) ? 0.92 : /[A-Z]/.test(char) ? 0.72 : 0.6;
  };
  return content.split('').reduce((sum, char) => sum + em(char) * size, 0);
}

function cut(content: string, maxWidth: number, size: number, mono: boolean): string {
  if (widthOf(content, size, mono) <= maxWidth) return content;
  let shown = content;
  while (shown !== '' && widthOf(`${shown}…`, size, mono) > maxWidth) shown = shown.slice(0, -1);
  return `${shown}…`;
}

/** Lines of at most so many pixels, broken between words. */
export function wrap(content: string, maxWidth: number, size: number): string[] {
  const lines: string[] = [];
  for (const word of content.split(' ')) {
    const longer = lines.length === 0 ? word : `${lines.at(-1)!} ${word}`;
    if (lines.length > 0 && widthOf(longer, size) <= maxWidth) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

export const rect = (
  x: number,
  y: number,
  width: number,
  height: number,
  className: string,
  radius = 0,
): string =>
  `<rect x="${n(x)}" y="${n(y)}" width="${n(Math.max(0, width))}" height="${n(Math.max(0, height))}" rx="${radius}" class="${className}"/>`;

export const line = (x1: number, y1: number, x2: number, y2: number, className: string): string =>
  `<line x1="${n(x1)}" y1="${n(y1)}" x2="${n(x2)}" y2="${n(y2)}" class="${className}"/>`;

export const dot = (x: number, y: number, radius: number, className: string): string =>
  `<circle cx="${n(x)}" cy="${n(y)}" r="${radius}" class="${className}"/>`;

export const path = (points: readonly (readonly [number, number])[], className: string): string =>
  `<path d="M ${points.map(([x, y]) => `${n(x)} ${n(y)}`).join(' L ')} Z" class="${className}"/>`;

export const polyline = (points: readonly (readonly [number, number])[], className: string): string =>
  `<polyline points="${points.map(([x, y]) => `${n(x)},${n(y)}`).join(' ')}" fill="none" class="${className}"/>`;

export const group = (x: number, y: number, parts: readonly string[]): string =>
  `<g transform="translate(${n(x)} ${n(y)})">\n${parts.join('\n')}\n</g>`;

/** A framed box with a heading. */
export const panel = (width: number, height: number, heading: string): string[] => [
  rect(0, 0, width, height, 'panel', 8),
  text(16, 26, heading, { size: 15, bold: true }),
];

/** An element that another program has drawn, within a page: its ids are made its own, its name spaces left out. */
export function embedSvg(svg: string, prefix: string, x: number, y: number): string {
  return svg
    .slice(svg.indexOf('<svg'))
    .replace(/<!--.*?-->/gs, '')
    .replace(/\s+xmlns:(rdkit|xlink)=(["']).*?\2/g, '')
    .replace(/\s(xml:space|baseProfile|version)=(["']).*?\2/g, '')
    .replace(/\sid=(["'])(.*?)\1/g, ` id="${prefix}-$2"`)
    .replace(/url\(#(.*?)\)/g, `url(#${prefix}-$1)`)
    .replace(/\s(?:xlink:)?href=(["'])#(.*?)\1/g, ` href="#${prefix}-$2"`)
    .replace(/^<svg/, `<svg x="${n(x)}" y="${n(y)}"`)
    .trim();
}

/** A drawing within a page of HTML, whose style sheet has its classes; the label is what a screen reader says. */
export const figure = (label: string, width: number, height: number, parts: readonly string[]): string =>
  `<svg class="chart" viewBox="0 0 ${n(width)} ${n(height)}" role="img" aria-label="${escapeXml(label)}">${parts.join('')}</svg>`;

/** A whole SVG file that needs nothing else: readable on light and dark desktops. `style`: classes of its own. */
export function svgPage(
  { title, width, height, style }: { title: string; width: number; height: number; style: string },
  parts: readonly string[],
): string {
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="page-title">`,
    `<title id="page-title">${escapeXml(title)}</title>`,
    `<style>${STYLE}${style}</style>`,
    rect(0, 0, width, height, 'page'),
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

/** Classes that every page has, by what they mean. */
const STYLE = `
text { font-family: system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
.mono { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.bold { font-weight: 600; }
.page { fill: #f4f5f6; }
.panel { fill: #ffffff; stroke: #dfe2e6; }
.paper { fill: #ffffff; }
.ink { fill: #1c2128; }
.muted { fill: #5a6472; }
.axis { stroke: #aab2bc; stroke-width: 1; }
.grid { stroke: #e7eaed; stroke-width: 1; }
.dashed { stroke: #8a94a0; stroke-width: 1; stroke-dasharray: 4 4; }
@media (prefers-color-scheme: dark) {
  .page { fill: #14171b; }
  .panel { fill: #1d2127; stroke: #343a43; }
  .paper { fill: #f3f4f5; }
  .ink { fill: #e8eaed; }
  .muted { fill: #a3acb8; }
  .axis { stroke: #6d7682; }
  .grid { stroke: #2b3038; }
}
`;
