import type { FC, PropsWithChildren } from 'hono/jsx';
import type { Context } from '../../context.ts';
import { ActionButton } from '../../parts/action.tsx';
import { LONGEST_COMMENT, LONGEST_NAME } from './form.ts';

export const ReadOnly: FC = () => (
  <p class="note">This dashboard is read-only: it was started without --actions.</p>
);

export const Who: FC<{ label: string; name: string; value?: string }> = ({ label, name, value = '' }) => (
  <label>
    {label}
    <input name={name} required maxlength={LONGEST_NAME} value={value} autocomplete="name" />
  </label>
);

interface ClosingProps {
  context: Context;
  to: string;
  label: string;
  who: string;
  open: { at: string; label: string };
}

/** Who closes reviews, and why; or leaves them open. */
export const Closing: FC<PropsWithChildren<ClosingProps>> = ({ context, to, label, who, open, children }) => (
  <>
    {context.actions ? (
      <ActionButton to={to} token={context.formToken} label={label} danger>
        {children}
        <Who label={who} name="reviewer" />
        <label>
          Why
          <input name="reason" maxlength={LONGEST_COMMENT} />
        </label>
      </ActionButton>
    ) : (
      <ReadOnly />
    )}
    <p>
      <a href={open.at}>{open.label}</a>
    </p>
  </>
);
