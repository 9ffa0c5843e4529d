import type { Child, FC } from 'hono/jsx';

/** A line of a list of facts. */
export const Fact: FC<{ term: Child; warn?: boolean; look?: string; children?: Child }> = ({
  term,
  warn = false,
  look,
  children,
}) => (
  <>
    <dt class={warn ? 'warn' : undefined}>{term}</dt>
    <dd class={look}>{children}</dd>
  </>
);
