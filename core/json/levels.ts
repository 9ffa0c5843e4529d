const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** `[` and `{`, and what ends them, differ in one bit. */
const ONE_BIT = 0x20;
const BEGIN = 0x5b | ONE_BIT;
const END = 0x5d | ONE_BIT;

/**
 * Whether a text that is JSON has more levels of objects and arrays than `most`. Brackets in strings are none. It is to be
 * asked before a text of others is parsed: levels cost a hundred times the memory of their brackets.
 */
export function isDeeperThan(most: number, text: string): boolean {
  let level = 0;
  let inString = false;
  // A loop: regular expressions have no room for a string of some megabytes.
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === BACKSLASH) i++;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) inString = true;
    else if ((code | ONE_BIT) === BEGIN && ++level > most) return true;
    else if ((code | ONE_BIT) === END) level--;
  }
  return false;
}
