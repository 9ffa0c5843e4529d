import { rowsOf } from '../../parts/pages.tsx';

/** Rows of a table, and groups that are read where a page reads no more. */
export const ROWS = 100;

/** The page of a table that is shown. */
export interface Paged {
  run: string;
  page: number;
  to: (page: number) => string;
  /** Of a step that is read a page at a time: all groups of it. */
  stored: number | null;
}

/** What of a table's rows is shown: all that were read, where only a page was. */
export const shownOf = <T>(
  { page, stored }: Paged,
  all: readonly T[],
): { rows: readonly T[]; last: number } =>
  stored === null
    ? { rows: rowsOf(all, page, ROWS), last: Math.ceil(all.length / ROWS) }
    : { rows: all, last: Math.ceil(stored / ROWS) };
