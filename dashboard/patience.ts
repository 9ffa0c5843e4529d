import type { Context as Request, MiddlewareHandler } from 'hono';
import type { App } from './context.ts';

export interface Patience {
  /** How long somebody is kept waiting for a page. */
  withinMs: number;
  /** How long a page that came later is kept for who asks again. */
  keptMs: number;
  /** Pages that are being made at once for people who wait. */
  most: number;
}

const USUAL: Patience = { withinMs: 8000, keptMs: 15_000, most: 32 };

/** Of requests that are made here: whoever follows a page, and what is being made already, waits as long as it takes. */
interface Inner {
  followed?: true;
  made?: true;
}

/** Files, of which the first byte may take as long as a page. */
const isFile = (path: string): boolean => path.startsWith('/find/episodes.');

/**
 * Nobody sits before an empty window for longer than `withinMs`: of a page that takes longer (a slow store, a large run) the
 * browser is told so by `notYet`, and asks again. The page is made on meanwhile, once for all who ask, and kept for them. It
 * is about people: who does not ask for `text/html` by name waits.
 */
export function patiently(
  app: App,
  notYet: (c: Request, seconds: number) => Response | Promise<Response>,
  patience: Partial<Patience> = {},
): MiddlewareHandler {
  const { withinMs, keptMs, most } = { ...USUAL, ...patience };
  const making = new Map<string, Promise<Response>>();

  /** Kept from when it is there; what cannot be made is for those alone who wait for it. */
  const make = (path: string, request: Request): Promise<Response> => {
    const inner: Inner = { made: true };
    const made = Promise.resolve(app.request(path, { headers: request.req.header() }, inner)).then(
      async (response) => new Response(await response.arrayBuffer(), response),
    );
    const forget = (): void => void making.delete(path);
    making.set(path, made);
    made.then(() => setTimeout(forget, keptMs).unref(), forget);
    return made;
  };

  return async (c, next) => {
    const { method, path, url } = c.req;
    const inner = c.env as Inner | undefined;
    // What was made before somebody has changed something shows how it was.
    if (method === 'POST') making.clear();
    const isForPerson = method === 'GET' && c.req.header('accept')?.includes('text/html') === true;
    if (!isForPerson || inner?.followed || inner?.made || isFile(path)) return next();
    const { pathname, search } = new URL(url);
    const at = pathname + search;
    const begun = making.get(at);
    if (begun === undefined && making.size >= most) return notYet(c, withinMs / 1000);
    const made = begun ?? make(at, c);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<null>((resolve) => (timer = setTimeout(resolve, withinMs, null)));
    try {
      const response = await Promise.race([made, late]);
      if (response === null) return await notYet(c, withinMs / 1000);
      // What was in time is what it was then; whoever loads it again sees it as it is.
      making.delete(at);
      return response.clone();
    } finally {
      clearTimeout(timer);
    }
  };
}
