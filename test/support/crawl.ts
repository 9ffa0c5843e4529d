/** A page that was asked for, as it came. */
export interface Crawled {
  path: string;
  status: number;
  headers: Headers;
  body: string;
}

/** Pages that differ in nothing but a number or a name are one kind. */
const kindOf = (path: string): string =>
  path
    .replace(/\?.*$/, '')
    .split('/')
    .map((part, i) => (/^\d+$/.test(part) || (i > 1 && part.length > 40) ? '*' : part))
    .join('/');

/** Every kind of page that links lead to, from `/` on and from those that are given, a few of each. */
export async function crawl(
  base: string,
  { ofEach = 2, most = 120, also = [] as readonly string[] } = {},
): Promise<Crawled[]> {
  const found: Crawled[] = [];
  const waiting = ['/', ...also];
  const seen = new Set(waiting);
  const kinds = new Map<string, number>();
  while (waiting.length > 0 && found.length < most) {
    const path = waiting.shift()!;
    const response = await fetch(new URL(path, base), { redirect: 'manual' });
    const body = await response.text();
    found.push({ path, status: response.status, headers: response.headers, body });
    if (response.headers.get('content-type')?.startsWith('text/html') !== true) continue;
    for (const [, href] of body.matchAll(/(?:href|src)="([^"]+)"/g)) {
      const target = href!.replaceAll('&amp;', '&').replace(/#.*$/, '');
      if (!target.startsWith('/') || target.startsWith('//') || seen.has(target)) continue;
      seen.add(target);
      const count = kinds.get(kindOf(target)) ?? 0;
      if (count >= ofEach) continue;
      kinds.set(kindOf(target), count + 1);
      waiting.push(target);
    }
  }
  return found;
}
