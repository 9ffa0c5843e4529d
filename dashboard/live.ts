import { streamSSE } from 'hono/streaming';
import { asset } from './assets.ts';
import type { App } from './context.ts';
import { WorkQueue } from './turns.ts';

/** How often a page that somebody follows is made anew. */
const INTERVAL_MS = 1500;

interface Follower {
  /** A page that is another one than the last, as JSON; null where it is the same. `over`: it will not change any more. */
  tell(page: string | null, over: boolean): void;
}

/** A page as it is now. */
interface Made {
  html: string;
  /** It follows nothing any more: what it shows has come to its end. */
  over: boolean;
}

/** A page that somebody has open: made once for all of them. */
class Followed {
  readonly followers = new Set<Follower>();
  /** What was told last, as JSON. */
  told: string | null = null;
  private last = '';
  private timer: NodeJS.Timeout | undefined;
  private readonly make: () => Promise<Made | null>;

  private readonly intervalMs: number;
  private readonly turns: WorkQueue;
  private ended = false;

  constructor(make: () => Promise<Made | null>, intervalMs: number, turns: WorkQueue) {
    this.make = make;
    this.intervalMs = intervalMs;
    this.turns = turns;
    this.next();
  }

  end(): void {
    this.ended = true;
    clearTimeout(this.timer);
  }

  private next(): void {
    this.timer = setTimeout(() => void this.look(), this.intervalMs);
  }

  private async look(): Promise<void> {
    // Whoever followed it may have gone while it waited for its turn.
    const made = await this.turns.take(async () => (this.ended ? null : this.make()));
    if (this.ended) return;
    // What every page says of the moment at which it was made is no news.
    const isNew = made !== null && withoutTime(made.html) !== withoutTime(this.last);
    if (isNew) {
      this.last = made.html;
      this.told = JSON.stringify(made.html);
    }
    const over = made?.over === true;
    for (const follower of this.followers) follower.tell(isNew ? this.told : null, over);
    if (this.followers.size > 0 && !over) this.next();
  }
}

const withoutTime = (html: string): string => html.replace(/<footer>.*<\/footer>/s, '');

/** Open pages; a browser holds a handful. All of them are made by turns, so that others who ask for a page do not wait. */
const MOST_FOLLOWED = 64;

/** Of requests that are made here. */
interface Inner {
  followed?: true;
}

/**
 * `/live?path=…`: server-sent events for whoever has that page open: the whole page when it would be another one, and a
 * sign of life when not, until it is over. The page is asked for as its reader would, by `app` itself.
 */
export function serveLive(app: App, intervalMs = INTERVAL_MS): void {
  const open = new Map<string, Followed>();
  const turns = new WorkQueue();
  app.get('/live', (c) => {
    // Nobody reads what follows the head, nor would anybody end it.
    if (c.req.method === 'HEAD') return c.body(null);
    const path = c.req.query('path') ?? '';
    // Written in another way this page is asked to follow itself, too.
    const followsItself = (c.env as Inner | undefined)?.followed === true;
    if (followsItself || !path.startsWith('/') || path.startsWith('//') || path.length > 2000) {
      return c.text('path: a page of this dashboard\n', 400);
    }
    if (!open.has(path) && open.size >= MOST_FOLLOWED) {
      return c.text(`${MOST_FOLLOWED} pages are followed already: close some\n`, 503);
    }
    const request = { headers: c.req.header() };
    const inner: Inner = { followed: true };
    return streamSSE(c, async (stream) => {
      let followed = open.get(path);
      if (!followed) {
        followed = new Followed(
          async () => {
            const response = await app.request(path, request, inner);
            if (response.headers.get('content-type')?.startsWith('text/html') === true) {
              const html = await response.text();
              // A page that could not be made says nothing of what it would follow.
              const over = response.ok && !html.includes(asset('live.js'));
              // Whoever comes now follows it anew.
              if (over) open.delete(path);
              return { html, over };
            }
            // What is no page may hold a file open, or a folder, until it is read.
            await response.body?.cancel();
            return null;
          },
          intervalMs,
          turns,
        );
        open.set(path, followed);
      }
      const page = followed;
      /** The newest page that was not sent yet: whoever reads slowly, or not at all, is kept no others. */
      let news: string | null = null;
      let writing = false;
      let isOver = false;
      let end = (): void => {};
      const write = async (): Promise<void> => {
        writing = true;
        do {
          const data = news;
          news = null;
          await stream.writeSSE(
            data === null ? { event: 'same', data: new Date().toISOString() } : { event: 'page', data },
          );
        } while (news !== null);
        writing = false;
        if (!isOver) return;
        await stream.writeSSE({ event: 'over', data: '' });
        end();
      };
      const follower: Follower = {
        tell: (text, over) => {
          news = text ?? news;
          isOver ||= over;
          if (!writing) void write();
        },
      };
      page.followers.add(follower);
      // It may be another one than the page that its reader has loaded before.
      if (page.told !== null) follower.tell(page.told, false);
      await new Promise<void>((resolve) => {
        end = resolve;
        stream.onAbort(resolve);
      });
      page.followers.delete(follower);
      if (page.followers.size > 0) return;
      page.end();
      if (open.get(path) === page) open.delete(path);
    });
  });
}
