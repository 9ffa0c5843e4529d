import type { Child, FC } from 'hono/jsx';
import { Scroll } from './scroll.tsx';

/** The head of a column of numbers, which stand at its right. */
export const numeric = (name: string): { numeric: string } => ({ numeric: name });

export interface TableProps {
  /** Its name for who does not see it; absent: its caption, where that is a text. */
  label?: string;
  caption?: Child;
  columns: readonly (Child | { numeric: string })[];
  /** Its rows. */
  children?: Child;
}

/** A table with a head, which scrolls by itself on a narrow screen. */
export const Table: FC<TableProps> = ({ label, caption, columns, children }) => (
  <Scroll label={label ?? (typeof caption === 'string' ? caption : 'table')}>
    <table>
      {caption !== undefined && <caption>{caption}</caption>}
      <thead>
        <tr>
          {columns.map((column) =>
            typeof column === 'object' && column !== null && 'numeric' in column ? (
              <th scope="col" class="number">
                {column.numeric}
              </th>
            ) : (
              <th scope="col">{column}</th>
            ),
          )}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </Scroll>
);
