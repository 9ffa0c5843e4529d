import { createHash, timingSafeEqual } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';
import { printable } from '../core/printable.ts';
import type { Context } from './context.ts';

/** Who may ask for pages, and by which names. */
export interface Access {
  /** Values of the Host header that are this server: whoever came by another name was led here by somebody else's DNS. */
  hosts: ReadonlySet<string>;
  /** Where it listens to other machines: the password of every request. */
  password: string | null;
}

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** What every answer says, also where it is a refusal. A route that has a stricter policy of its own keeps it. */
export const headers: MiddlewareHandler = async (c, next) => {
  await next();
  // Nobody reads it, and a download has its file until somebody does.
  if (c.req.method === 'HEAD') await c.res.body?.cancel();
  const set = (name: string, value: string): void => {
    if (!c.res.headers.has(name)) c.res.headers.set(name, value);
  };
  set('Content-Security-Policy', POLICY);
  set('X-Content-Type-Options', 'nosniff');
  set('X-Frame-Options', 'DENY');
  // `no-referrer` would take the Origin from our own forms.
  set('Referrer-Policy', 'same-origin');
  set('Cross-Origin-Opener-Policy', 'same-origin');
  set('Cross-Origin-Resource-Policy', 'same-origin');
  set('Permissions-Policy', 'camera=(), microphone=(), geolocation=()');
  set('Cache-Control', 'no-store');
};

/**
 * Writes out what hides or reorders its neighbours, wherever in a page it is: parts that are shown as texts do so
 * themselves, and this holds for a name or a value that was forgotten.
 */
export const plainPages: MiddlewareHandler = async (c, next) => {
  await next();
  if (c.res.headers.get('content-type')?.startsWith('text/html') !== true) return;
  const html = await c.res.text();
  c.res = new Response(printable(html), { status: c.res.status, headers: c.res.headers });
};

/** Refuses whoever came by another name, without the password, or by a method that is none of a page's. */
export function admission({ hosts, password }: Access): MiddlewareHandler {
  return async (c, next) => {
    const host = c.req.header('host')?.toLowerCase();
    if (host === undefined || !hosts.has(host)) {
      return c.text(
        'This server does not answer to that name. Open it by the address that it printed, or start it with --allow-host NAME.\n',
        421,
      );
    }
    if (password !== null && !isPassword(c.req.header('authorization'), password)) {
      c.header('WWW-Authenticate', 'Basic realm="Gradus", charset="UTF-8"');
      return c.text(
        'The password is the token that the dashboard was started with; any user name will do.\n',
        401,
      );
    }
    // Others may link to pages. What they embed or fetch they could not read, and it would cost what it costs.
    const fromElsewhere = ['cross-site', 'same-site'].includes(c.req.header('sec-fetch-site') ?? '');
    if (fromElsewhere && c.req.header('sec-fetch-mode') !== 'navigate')
      return c.text('Only pages of this dashboard may request its pages.\n', 403);
    if (!['GET', 'HEAD', 'POST'].includes(c.req.method)) return c.text('GET, HEAD or POST\n', 405);
    return next();
  };
}

/** Of HTTP's Basic scheme, which every browser asks for by itself. */
function isPassword(header: string | undefined, password: string): boolean {
  const [, encoded] = /^basic +([A-Za-z0-9+/=]+)$/i.exec(header ?? '') ?? [];
  if (encoded === undefined) return false;
  const given = Buffer.from(encoded, 'base64').toString('utf8');
  return isSame(given.slice(given.indexOf(':') + 1), password);
}

/** In a time that says nothing of where they differ. */
const isSame = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b));
const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/**
 * A change is a form of one of our own pages: allowed at all, from this very origin, with the token of this start. Anything
 * else is refused before it is read by whoever would act on it.
 */
export function changes({ actions, formToken }: Pick<Context, 'actions' | 'formToken'>): MiddlewareHandler {
  return async (c, next) => {
    if (c.req.method !== 'POST') return next();
    if (!actions) {
      return c.text('This dashboard is read-only. Start it with --actions to steer runs from it.\n', 403);
    }
    const { origin, host } = { origin: c.req.header('origin'), host: c.req.header('host') };
    const site = c.req.header('sec-fetch-site');
    // The proxy before it may speak TLS: browsers then say so.
    const own = origin === `http://${host}` || origin === `https://${host}`;
    if (!own || (site !== undefined && site !== 'same-origin')) {
      return c.text('A change must come from a page of this dashboard.\n', 403);
    }
    if (!/^application\/x-www-form-urlencoded(;|$)/i.test(c.req.header('content-type') ?? '')) {
      return c.text('A change is a form: application/x-www-form-urlencoded.\n', 415);
    }
    const { token } = await c.req.parseBody();
    if (typeof token !== 'string' || !isSame(token, formToken)) {
      return c.text('This page is older than the dashboard: load it again, and repeat your change.\n', 403);
    }
    return next();
  };
}
