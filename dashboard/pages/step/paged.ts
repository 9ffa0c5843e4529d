import { rowsOfPage } from '../../parts/pages.tsx';

/** Rows of a table, and groups that are read where a page reads no more. */
export const STEP_ROWS = 100;

/** The page of a table that is shown. */
export interface Paged {
  run: string;
  page: number;
  to: (page: number) => string;
  /** Of a step that is read a page at a time: all groups of it. */
  stored: number | null;
}

/** What of a table's rows is shown: all that were read, where only a page was. */
export const shownRows = <T>(
  { page, stored }: Paged,
  all: readonly T[],
): { rows: readonly T[]; last: number } =>
  stored === null
    ? { rows: rowsOfPage(all, page, STEP_ROWS), last: Math.ceil(all.length / STEP_ROWS) }
    : { rows: all, last: Math.ceil(stored / STEP_ROWS) };
