/**
 * Text of a model, a tool or another program as people may be shown it: control characters (C0 but for line feed and
 * tab, DEL, C1) and those that reorder or hide what stands beside them (Unicode's bidirectional controls, zero-width
 * characters, separators of lines, the byte order mark) are written out as `\uXXXX`, as in JSON, so that no escape
 * sequence reaches a terminal, nothing reads otherwise than it is, and printed JSON stays the JSON that it was.
 */
export const printable = (text: string): string => text.replaceAll(HIDDEN, asEscape);

/** The pieces of a text in turn: what is shown as it is, and what is written out in its place. */
export function* printablePieces(text: string): Generator<{ hidden: boolean; text: string }> {
  let from = 0;
  for (const { 0: character, index } of text.matchAll(HIDDEN)) {
    if (index > from) yield { hidden: false, text: text.slice(from, index) };
    yield { hidden: true, text: asEscape(character) };
    from = index + character.length;
  }
  if (from < text.length) yield { hidden: false, text: text.slice(from) };
}

const asEscape = (character: string): string =>
  character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');

const HIDDEN =
  // oxlint-disable-next-line no-control-regex, no-misleading-character-class -- they are what is looked for
  /[\u{0000}-\u{0008}\u{000b}-\u{001f}\u{007f}-\u{009f}\u{00ad}\u{034f}\u{061c}\u{115f}\u{1160}\u{17b4}\u{17b5}\u{180b}-\u{180f}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{3164}\u{fe00}-\u{fe0d}\u{feff}\u{ffa0}\u{fff0}-\u{fffb}\u{e0000}-\u{e0fff}\p{Surrogate}]/gu;
