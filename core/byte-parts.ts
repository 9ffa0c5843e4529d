// Bytes in parts that lie end to end, such as the tensors of a model where they are.

export const byteCount = (parts: readonly Uint8Array[]): number =>
  parts.reduce((sum, { byteLength }) => sum + byteLength, 0);

/** A copy of all in one piece. */
export function joinParts(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(byteCount(parts));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  return bytes;
}

/** What a stream gives, in one piece, where that is no more than `most` bytes; else undefined, and the rest is not read. */
export async function readUpTo(
  stream: AsyncIterable<Uint8Array> | null,
  most: number,
): Promise<Uint8Array | undefined> {
  const parts: Uint8Array[] = [];
  let left = most;
  for await (const part of stream ?? []) {
    left -= part.byteLength;
    if (left < 0) return undefined;
    parts.push(part);
  }
  return joinParts(parts);
}

/** The same as text in UTF-8. */
export async function readTextUpTo(
  stream: AsyncIterable<Uint8Array> | null,
  most: number,
): Promise<string | undefined> {
  const bytes = await readUpTo(stream, most);
  return bytes && new TextDecoder().decode(bytes);
}
