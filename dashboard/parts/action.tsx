import type { Child, FC } from 'hono/jsx';

/**
 * A form that changes something: it works without scripts, and has the token of this start. What cannot be taken back
 * leads to a page that asks first, which is a link of its own.
 */
export const ActionButton: FC<{
  to: string;
  token: string;
  label: string;
  danger?: boolean;
  children?: Child;
}> = ({ to, token, label, danger = false, children }) => (
  <form method="post" action={to} class="action">
    <input type="hidden" name="token" value={token} />
    {children}
    <button type="submit" class={danger ? 'danger' : ''}>
      {label}
    </button>
  </form>
);
