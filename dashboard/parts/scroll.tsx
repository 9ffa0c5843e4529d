import type { Child, FC } from 'hono/jsx';

/** Something wider than a narrow screen, such as a table: it scrolls by itself, also by keys. */
export const Scroll: FC<{ label: string; children?: Child }> = ({ label, children }) => (
  <div class="scroll" tabindex={0} role="group" aria-label={label}>
    {children}
  </div>
);
