import type { FC } from 'hono/jsx';
import { GradusError } from '../../core/errors.ts';

/** The page of a long list that an address asks for. Throws GradusError('spec', 'invalid-query'). */
export function pageIn(written: string = '1'): number {
  if (/^[1-9]\d{0,5}$/.test(written)) return Number(written);
  throw new GradusError('spec', 'invalid-query', 'page is a whole number from 1');
}

/** What a page of so many rows has of a list. */
export const rowsOfPage = <T,>(all: readonly T[], page: number, rows: number): T[] =>
  all.slice((page - 1) * rows, page * rows);

/** Links through the pages of a list; nothing where it has only one. */
export const Pages: FC<{ label: string; page: number; last: number; to: (page: number) => string }> = ({
  label,
  page,
  last,
  to,
}) =>
  last <= 1 ? null : (
    <nav aria-label={`Pages of ${label}`}>
      <p>
        {page > 1 && <a href={to(1)}>first</a>} {page > 1 && <a href={to(page - 1)}>back</a>} page {page} of{' '}
        {last} {page < last && <a href={to(page + 1)}>on</a>} {page < last && <a href={to(last)}>last</a>}
      </p>
    </nav>
  );
