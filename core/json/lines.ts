import { GradusError } from '../errors.ts';

/** A line of a file, from 1. */
export interface Line {
  number: number;
  text: string;
}

/** Bytes of the longest line that is read: longer ones are no example that any model has room for. */
export const LONGEST_LINE = 16 * 2 ** 20;

const NEWLINE = 10;

/**
 * The lines of a file that are not blank, as its bytes come in; no more than one line is held at a time. `what` names the
 * file. Throws GradusError('spec', 'invalid-data') with file and line for one that is too long, or is not UTF-8.
 */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  what: string,
  longest = LONGEST_LINE,
): AsyncGenerator<Line> {
  let number = 1;
  let held: Uint8Array[] = [];
  let bytes = 0;
  const decode = (): Line[] => {
    const text = textOf(held, bytes, `${what}, line ${number}`);
    const line = { number, text };
    number++;
    held = [];
    bytes = 0;
    return text.trim() === '' ? [] : [line];
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      hold(chunk.subarray(from, end));
      yield* decode();
      from = end + 1;
    }
    hold(chunk.subarray(from));
  }
  if (bytes > 0) yield* decode();

  function hold(part: Uint8Array): void {
    bytes += part.length;
    if (bytes > longest)
      throw invalidData(
        `${what}, line ${number}`,
        `has more than ${longest} bytes: write one example a line, and leave out what is no text`,
      );
    held.push(part);
  }
}

export const invalidData = (where: string, why: string, cause?: unknown): GradusError =>
  new GradusError('spec', 'invalid-data', `${where} ${why}`, { cause });

function textOf(parts: readonly Uint8Array[], bytes: number, where: string): string {
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(whole);
  } catch (cause) {
    throw invalidData(where, 'is not UTF-8: write the file anew in that encoding', cause);
  }
}
