const OPENING = /\\(?:boxed|fbox)\s*\{/gu;

/**
 * What stands in the last `\boxed{…}` (or `\fbox{…}`) whose braces balance; null where there is none. In one pass over
 * the text, however many are opened and never closed.
 */
export function lastBoxed(text: string): string | null {
  /** Where braces are open: the start of a box's content, or −1 of a brace that is no box. */
  const open: number[] = [];
  const starts = new Set<number>();
  for (const match of text.matchAll(OPENING)) starts.add(match.index + match[0].length - 1);
  let last: { from: number; to: number } | null = null;
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    // What is escaped is no brace; of `\\{` only the backslash is.
    if (char === '\\') i++;
    else if (char === '{') open.push(starts.has(i) ? i + 1 : -1);
    else if (char === '}') {
      const from = open.pop();
      // Of boxes within each other it is the innermost one, which closes first, that has the answer.
      if (from !== undefined && from >= 0 && (last === null || from > last.from)) last = { from, to: i };
    }
  }
  return last === null ? null : text.slice(last.from, last.to);
}
