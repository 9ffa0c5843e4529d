/** From here on the rest of a page is little. */
const LARGE = 2 ** 18;

/**
 * Zeros in pages of their own where there are many. TensorFlow takes numbers that begin at a multiple of 64 bytes where
 * they are, and copies all others: Node's ordinary buffers begin 16 bytes behind one. V8 maps pages for buffers that may
 * be resized.
 */
export const pageAligned = (bytes: number): ArrayBuffer =>
  bytes < LARGE ? new ArrayBuffer(bytes) : new ArrayBuffer(bytes, { maxByteLength: bytes });
