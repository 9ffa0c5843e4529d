const TAG = /<\/?think>/u;

/**
 * Takes `<think>…</think>` off the beginning of a turn. `opened`: the prompt ended with `<think>`, so the turn begins
 * inside. Gives what is left, or why the thought does not parse.
 */
export function splitThought(text: string, opened: boolean): { rest: string } | { problem: string } {
  const trimmed = text.trimStart();
  const inside = opened ? text : trimmed.startsWith('<think>') ? trimmed.slice('<think>'.length) : undefined;
  if (inside === undefined) {
    const stray = TAG.exec(text)?.[0];
    return stray === undefined ? { rest: text } : { problem: `unexpected ${stray}` };
  }
  const close = inside.indexOf('</think>');
  if (close < 0) return { problem: 'unclosed <think>' };
  const rest = inside.slice(close + '</think>'.length);
  // Apart: a thought that ends in `<` and an answer that begins with `think>` are no tag.
  const again = (TAG.exec(inside.slice(0, close)) ?? TAG.exec(rest))?.[0];
  return again === undefined
    ? { rest }
    : { problem: `${again} again: one thought a turn, before everything else` };
}
