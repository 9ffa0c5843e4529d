// Arguments of commands in LaTeX: a group in braces, a command, or one character.

const TAKES = /\\(frac|binom|sqrt|overline|mathbb|mathcal|vec|hat)(?![A-Za-z])(\s*\[[^[\]{}]*\])?/gu;
const HOW_MANY = new Map([
  ['frac', 2],
  ['binom', 2],
]);

/** Every argument in braces: `\frac12`, `\frac{1}2` and `\frac 1 2` are `\frac{1}{2}`. What lacks one stays as it is. */
export function bracedArguments(text: string): string {
  let braced = '';
  let at = 0;
  for (const match of text.matchAll(TAKES)) {
    if (match.index < at) continue;
    const [command, name, root = ''] = match;
    const read = argumentsAt(text, match.index + command.length, HOW_MANY.get(name!) ?? 1);
    if (!read) continue;
    const all = read.args.map((one) => `{${bracedArguments(one).trim()}}`).join('');
    braced += `${text.slice(at, match.index)}\\${name}${root.trim()}${all}`;
    at = read.end;
  }
  return braced + text.slice(at);
}

function argumentsAt(text: string, from: number, count: number): { args: string[]; end: number } | null {
  const args: string[] = [];
  let end = from;
  for (let n = 0; n < count; n++) {
    while (text[end] === ' ') end++;
    const start = end;
    if (text[end] === '{') {
      end = groupEnd(text, end);
      if (end < 0) return null;
      args.push(text.slice(start + 1, end - 1));
    } else {
      const one = /^(?:\\[A-Za-z]+|[A-Za-z0-9])/u.exec(text.slice(start, start + 30))?.[0];
      if (one === undefined || new RegExp(TAKES.source, 'u').test(one)) return null;
      args.push(one);
      end += one.length;
    }
  }
  return { args, end };
}

/** One past the brace that closes the one at `from`; −1 where none does. */
function groupEnd(text: string, from: number): number {
  let depth = 0;
  for (let i = from; i < text.length; i++) {
    if (text[i] === '\\') i++;
    else if (text[i] === '{') depth++;
    else if (text[i] === '}' && --depth === 0) return i + 1;
  }
  return -1;
}
