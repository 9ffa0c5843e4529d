import type { Page } from './pages.ts';

/** The page as the policy reads it: a line a line, what can be clicked in square brackets. */
export function asText({ searchBox, lines }: Page): string {
  const written = lines.map((parts) =>
    parts.map((part) => (typeof part === 'string' ? part : `[${part.label}]`)).join(' '),
  );
  return [...(searchBox ? [SEARCH_LINE] : []), ...written].join('\n');
}

/** How a search box reads. */
export const SEARCH_LINE = 'search:';
