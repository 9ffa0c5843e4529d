/** A page that was asked for, as it came. */
export interface Crawled {
  path: string;
  status: number;
  headers: Headers;
  body: string;
}

/** Pages that are asked for at a time. */
const AT_ONCE = 4;

/** Pages that differ in nothing but a number or a name are one kind. */
const kindOf = (path: string): string =>
  path
    .replace(/\?.*$/, '')
    .split('/')
    .map((part, i) => (/^\d+$/.test(part) || (i > 1 && part.length > 40) ? '*' : part))
    .join('/');

/** Of pages that show the same of a run, or of another stage of it, the longest. */
export function oneOfEachKind(pages: readonly Crawled[]): Crawled[] {
  const stageless = (path: string): string =>
    kindOf(path).replace(/^(\/runs\/[^/]+\/(?:steps|groups|episodes|reweigh)\/)[^/]+/, '$1*');
  const shortestFirst = pages.toSorted((a, b) => a.body.length - b.body.length);
  return [...new Map(shortestFirst.map((page) => [stageless(page.path), page])).values()];
}

/** Every kind of page that links lead to, from `/` on and from those that are given, a few of each. */
export async function crawl(
  base: string,
  { ofEach = 2, most = 120, also = [] as readonly string[] } = {},
): Promise<Crawled[]> {
  const found: Crawled[] = [];
  const waiting = ['/', ...also];
  const seen = new Set(waiting);
  const kinds = new Map<string, number>();
  const ask = async (path: string): Promise<Crawled> => {
    const response = await fetch(new URL(path, base), { redirect: 'manual' });
    return { path, status: response.status, headers: response.headers, body: await response.text() };
  };
  while (waiting.length > 0 && found.length < most) {
    const some = await Promise.all(waiting.splice(0, AT_ONCE).map(ask));
    found.push(...some);
    for (const page of some) follow(page);
  }
  return found;

  function follow({ headers, body }: Crawled): void {
    if (headers.get('content-type')?.startsWith('text/html') !== true) return;
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
}
