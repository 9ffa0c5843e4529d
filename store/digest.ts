import { createHash } from 'node:crypto';
import { GradusError } from '../core/errors.ts';
import { atOnce, inTurns } from '../engine/in-pieces.ts';
import type { InPieces } from '../engine/in-pieces.ts';

/** SHA-256 in lower-case hex, for what is small: 7 ms for 10 MB. */
export const sha256Hex = (bytes: Uint8Array): string => atOnce(sha256InPieces([bytes]));

/** The same for any number of bytes, in parts that lie end to end, with turns of the event loop in between: weights are gigabytes. */
export const sha256OfMany = (...parts: readonly Uint8Array[]): Promise<string> =>
  inTurns(sha256InPieces(parts));

export const DIGEST_FORM = /^[0-9a-f]{64}$/;

/** Digests become names of files: throws GradusError('store', 'invalid-digest') for what is none. */
export function assertDigest(sha256: string): void {
  if (DIGEST_FORM.test(sha256)) return;
  throw new GradusError(
    'store',
    'invalid-digest',
    `${JSON.stringify(sha256.slice(0, 80))} is no SHA-256 in lower-case hex: the reference was written by other software`,
  );
}

/** Bytes hashed between two breaks: 3 ms. */
const PIECE = 2 ** 22;

function* sha256InPieces(parts: readonly Uint8Array[]): InPieces<string> {
  const hash = createHash('sha256');
  for (const bytes of parts) {
    for (let from = 0; from < bytes.byteLength; from += PIECE) {
      hash.update(bytes.subarray(from, from + PIECE));
      yield;
    }
  }
  return hash.digest('hex');
}
