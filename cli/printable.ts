/**
 * Text of a model, a tool or another program as a terminal may show it: control characters (C0 but for line feed and
 * tab, DEL, C1) and those that reorder or hide what stands beside them (Unicode's bidirectional controls, zero-width
 * characters, separators of lines, the byte order mark) are written out as `\uXXXX`, as in JSON, so that no escape
 * sequence reaches the terminal, and printed JSON stays the JSON that it was.
 */
export const printable = (text: string): string =>
  text.replaceAll(HIDDEN, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);

const HIDDEN =
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A line on standard output. */
export const print = (text: string): void => void process.stdout.write(`${printable(text)}\n`);

/** A line on standard error, which leaves standard output to what another program reads. */
export const note = (text: string): void => void process.stderr.write(`${printable(text)}\n`);
