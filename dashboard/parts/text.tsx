import type { FC } from 'hono/jsx';
import { printablePieces } from '../../core/printable.ts';

/** Characters of a text that a page shows before it is asked for more. */
const USUAL_LENGTH = 4000;

/**
 * What a model, a tool, a person or a server wrote. It becomes text nodes alone; characters that would hide or reorder
 * what stands beside them are written out; what is longer than `max` characters is cut and says so.
 */
export const Text: FC<{ value: string; max?: number }> = ({ value, max = USUAL_LENGTH }) => {
  const shown = value.length > max ? value.slice(0, max) : value;
  return (
    <>
      {[...printablePieces(shown)].map(({ hidden, text }) =>
        hidden ? <span class="hidden-character">{text}</span> : text,
      )}
      {shown.length < value.length && (
        <span class="cut"> … {value.length - shown.length} more characters are not shown</span>
      )}
    </>
  );
};

/** The same where the lines of the text matter. */
export const TextBlock: FC<{ value: string; max?: number; label?: string }> = ({ value, max, label }) => (
  <pre class="text" tabindex={0} role="region" aria-label={label ?? 'text'}>
    <Text value={value} {...(max !== undefined && { max })} />
  </pre>
);
