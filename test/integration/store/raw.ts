import type { Codec } from '../../../store/codec.ts';
import type { CallOptions, ObjectStore } from '../../../store/objects/object-store.ts';
import type { BlobRef } from '../../../core/refs.ts';

/** Bytes that mean nothing. */
export const raw: Codec<Uint8Array> = {
  contentType: 'application/octet-stream',
  encode: (bytes) => bytes,
  decode: (bytes) => bytes,
};

/** The ref of what lies at the key from now on. */
export const put = async (
  store: ObjectStore,
  key: string,
  bytes: Uint8Array,
  options: CallOptions = {},
): Promise<BlobRef> => (await store.putIfAbsent(key, raw, bytes, options)).ref;
