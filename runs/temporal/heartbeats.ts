import { fieldOf } from './temporal-values.ts';

/** What an activity said of itself with its last heartbeat, as far as it is known what that means. */
export type Heartbeat =
  /** `advance` and `resume`. */
  | { kind: 'progress'; done: number; total: number; tokens: number }
  /** A long call: attempts of the tool that failed, why the last did, and what the tool itself says. */
  | { kind: 'call'; failed: number; reason: string | null; said: string | null }
  /** A long call that can neither read nor write. */
  | { kind: 'store-away'; seconds: number; reason: string }
  | { kind: 'other'; text: string };

/** Characters of what is shown. */
const LONGEST = 300;

/** null of an activity that only says that it is alive. */
export function heartbeatOf(details: unknown): Heartbeat | null {
  if (details === undefined || details === null) return null;
  const count = (name: string): number | null => {
    const value = fieldOf(details, name);
    return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null;
  };
  const reason = textOf(fieldOf(details, 'reason'));
  const [done, total, tokens] = [count('done'), count('total'), count('tokens')];
  if (done !== null && total !== null) return { kind: 'progress', done, total, tokens: tokens ?? 0 };
  const failed = count('failed');
  if (failed !== null) return { kind: 'call', failed, reason, said: textOf(fieldOf(details, 'said')) };
  const seconds = count('waitsForStoreSeconds');
  if (seconds !== null) return { kind: 'store-away', seconds, reason: reason ?? 'not said' };
  return { kind: 'other', text: textOf(details) ?? '' };
}

function textOf(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

/** The same in a line. */
export function heartbeatInWords(heartbeat: Heartbeat): string {
  switch (heartbeat.kind) {
    case 'progress':
      return `${heartbeat.done} of ${heartbeat.total} episodes, ${heartbeat.tokens} tokens`;
    case 'call':
      return [
        heartbeat.failed === 0
          ? null
          : `${heartbeat.failed} attempt${heartbeat.failed === 1 ? '' : 's'} of the tool failed`,
        heartbeat.reason,
        heartbeat.said === null ? null : `the tool says ${heartbeat.said}`,
      ]
        .filter((part) => part !== null)
        .join('; ');
    case 'store-away':
      return `waits for the object store for ${heartbeat.seconds} s: ${heartbeat.reason}`;
    default:
      return heartbeat.text;
  }
}
