import { streamSSE } from 'hono/streaming';
import type { App } from './context.ts';

/** How often a page that somebody follows is made anew. */
const INTERVAL_MS = 1500;

interface Follower {
  /** A page that is another one than the last; null where it is the same. */
  tell(html: string | null): void;
}

/** A page that somebody has open: made once for all of them. */
class Followed {
  readonly followers = new Set<Follower>();
  last: string | null = null;
  private timer: NodeJS.Timeout | undefined;
  private readonly make: () => Promise<string | null>;

  constructor(make: () => Promise<string | null>) {
    this.make = make;
    this.next();
  }

  end(): void {
    clearTimeout(this.timer);
  }

  private next(): void {
    this.timer = setTimeout(() => void this.look(), INTERVAL_MS);
  }

  private async look(): Promise<void> {
    const html = await this.make();
    // What every page says of the moment at which it was made is no news.
    const isNew = html !== null && withoutTime(html) !== withoutTime(this.last ?? '');
    if (isNew) this.last = html;
    for (const follower of this.followers) follower.tell(isNew ? html : null);
    if (this.followers.size > 0) this.next();
  }
}

const withoutTime = (html: string): string => html.replace(/<footer>.*<\/footer>/s, '');

/** Open pages; a browser holds a handful, and each costs what its page costs to make. */
const MOST_FOLLOWED = 64;

/**
 * `/live?path=…`: server-sent events for whoever has that page open: the whole page when it would be another one, and a
 * sign of life when not. The page is asked for as its reader would, by `app` itself.
 */
export function serveLive(app: App): void {
  const open = new Map<string, Followed>();
  app.get('/live', (c) => {
    const path = c.req.query('path') ?? '';
    if (!path.startsWith('/') || path.startsWith('//') || path.startsWith('/live') || path.length > 2000) {
      return c.text('path: a page of this dashboard\n', 400);
    }
    if (!open.has(path) && open.size >= MOST_FOLLOWED) {
      return c.text(`${MOST_FOLLOWED} pages are followed already: close some\n`, 503);
    }
    const request = { headers: c.req.header() };
    return streamSSE(c, async (stream) => {
      let followed = open.get(path);
      if (!followed) {
        followed = new Followed(async () => {
          const response = await app.request(path, request);
          return response.headers.get('content-type')?.startsWith('text/html') === true
            ? response.text()
            : null;
        });
        open.set(path, followed);
      }
      const page = followed;
      let telling = Promise.resolve();
      const follower: Follower = {
        tell: (html) => {
          telling = telling.then(() =>
            stream.writeSSE(
              html === null ? { event: 'same', data: '' } : { event: 'page', data: JSON.stringify(html) },
            ),
          );
        },
      };
      page.followers.add(follower);
      await new Promise<void>((resolve) => stream.onAbort(resolve));
      page.followers.delete(follower);
      if (page.followers.size > 0) return;
      page.end();
      open.delete(path);
    });
  });
}
