import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { App } from './context.ts';

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const FILES = ['style.css', 'moves.js', 'live.js', 'icon.svg'];

/** What pages load beside themselves: read once, and named by what is in it, so that a browser may keep it for ever. */
const assets = new Map(
  FILES.map((name) => {
    const body = readFileSync(path.join(import.meta.dirname, 'browser', name));
    const digest = createHash('sha256').update(body).digest('hex').slice(0, 12);
    return [name, { body, href: `/static/${digest}/${name}`, type: TYPES[path.extname(name)]! }] as const;
  }),
);

/** The address of a file of dashboard/browser. */
export function asset(name: string): string {
  const found = assets.get(name);
  if (!found) throw new Error(`there is no asset ${name}`);
  return found.href;
}

export function serveAssets(app: App): void {
  for (const { body, href, type } of assets.values()) {
    app.get(href, (c) => {
      c.header('Content-Type', type);
      c.header('Cache-Control', 'public, max-age=31536000, immutable');
      return c.body(new Uint8Array(body));
    });
  }
}
