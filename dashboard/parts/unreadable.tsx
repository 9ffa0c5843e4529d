import type { FC } from 'hono/jsx';
import { Text } from './text.tsx';

const MOST_SHOWN = 20;

/** What of a page's objects is damaged, by name and why: the rest is shown without it. */
export const Unreadable: FC<{ of: readonly string[] }> = ({ of }) => {
  const messages = [...new Set(of)];
  if (messages.length === 0) return null;
  return (
    <details class="stale" open={messages.length === 1}>
      <summary>
        {messages.length === 1
          ? 'One object that this page is made of cannot be read; the rest is shown without it'
          : `${messages.length} objects that this page is made of cannot be read; the rest is shown without them`}
      </summary>
      <ul>
        {messages.slice(0, MOST_SHOWN).map((message) => (
          <li>
            <Text value={message} max={500} />
          </li>
        ))}
      </ul>
    </details>
  );
};
