import { SEARCH_LINE } from './as-text.ts';
import type { Page } from './pages.ts';

/** The page as a browser shows it: links where there is something to click, a form where one can search. */
export function asHtml({ searchBox, lines }: Page): string {
  const written = lines.map((parts) => {
    const spans = parts.map((part) =>
      typeof part === 'string'
        ? `<span>${escaped(part)}</span>`
        : `<a href="${escaped(part.to)}">${escaped(part.label)}</a>`,
    );
    return `<p>${spans.join(' ')}</p>`;
  });
  const form = `<form action="/search"><label>${SEARCH_LINE} <input name="q" type="search"></label></form>`;
  return [
    '<!doctype html>',
    '<html lang="en"><head><meta charset="utf-8"><title>shop</title></head><body>',
    ...(searchBox ? [form] : []),
    ...written,
    '</body></html>',
  ].join('\n');
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
