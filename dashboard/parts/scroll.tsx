import type { Child, FC } from 'hono/jsx';

/** What may be wider than the page: it scrolls by itself, also for who has a keyboard only. */
export const Scroll: FC<{ label: string; children?: Child }> = ({ label, children }) => (
  <div class="scroll" tabindex={0} role="region" aria-label={label}>
    {children}
  </div>
);
