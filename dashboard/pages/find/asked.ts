import type { Context as Request } from 'hono';
import { readQuery, queryWords } from '../../../runs/find/find-query.ts';
import type { Query } from '../../../runs/find/find-query.ts';
import { pageIn } from '../../parts/pages.tsx';

export interface FindRequest {
  run: string;
  query: Query;
  page: number;
}

export function findRequestIn(c: Request, words = new URL(c.req.url).searchParams): FindRequest {
  const given: Record<string, string[]> = {};
  for (const [name, value] of words) {
    if (name !== 'run' && name !== 'page') (given[name] ??= []).push(value);
  }
  return {
    run: words.get('run') ?? '',
    query: readQuery(given),
    page: pageIn(words.get('page') ?? undefined),
  };
}

export const linkTo = (
  to: string,
  { run, query }: FindRequest,
  { page, text }: { page?: number; text?: null } = {},
): string => {
  const words = queryWords(query).filter(([name]) => text !== null || name !== 'text');
  const all: [string, string][] = [['run', run], ...words];
  return `${to}?${new URLSearchParams(page === undefined || page === 1 ? all : [...all, ['page', String(page)]]).toString()}`;
};
