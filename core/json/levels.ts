/** Whether a text that is JSON has more levels of objects and arrays than `most`. Brackets in strings are none. */
export function isDeeperThan(most: number, text: string): boolean {
  let level = 0;
  for (const [one] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gsu)) {
    if (one === '{' || one === '[') level++;
    else if (one === '}' || one === ']') level--;
    if (level > most) return true;
  }
  return false;
}
