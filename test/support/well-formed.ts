/**
 * What keeps a text from being well-formed XML, as far as a page of ours could offend: tags that do not nest,
 * attributes that are doubled or not quoted, stray `<` and `&`. undefined when it is well-formed.
 */
export function xmlProblem(xml: string): string | undefined {
  const open: string[] = [];
  let roots = 0;
  const body = xml.replace(/^<\?xml[^?]*\?>\s*/, '');
  const token = /<!--[\s\S]*?-->|<[^>"']*(?:(?:"[^"]*"|'[^']*')[^>"']*)*>|[^<]+|</g;
  for (const [part] of body.matchAll(token)) {
    if (part.startsWith('<!--')) continue;
    if (!part.startsWith('<')) {
      if (/&(?!(?:#\d+|#x[0-9a-f]+|amp|lt|gt|quot|apos);)/i.test(part)) return `a stray & in ${part}`;
      if (open.length === 0 && part.trim() !== '') return `text outside of the root: ${part}`;
      continue;
    }
    const closing = /^<\/([\w:-]+)\s*>$/.exec(part);
    if (closing) {
      if (open.pop() !== closing[1]) return `${part} closes what is not open`;
      continue;
    }
    const tag = /^<([\w:-]+)((?:\s+[\w:-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>$/.exec(part);
    if (!tag) return `no tag: ${part}`;
    const names = [...tag[2]!.matchAll(/([\w:-]+)\s*=\s*(?:"[^"]*"|'[^']*')/g)].map(([, name]) => name!);
    if (new Set(names).size < names.length) return `a doubled attribute: ${part}`;
    if (open.length === 0 && ++roots > 1) return 'two roots';
    if (tag[3] === '') open.push(tag[1]!);
  }
  return open.length > 0 ? `${open.at(-1)} is not closed` : roots === 1 ? undefined : 'no root';
}
