import { createHash } from 'node:crypto';
import type { ImageRef, Observation } from '../../core/episode/episode.ts';
import type { Image } from '../contract/environment.ts';

// Images that tools show. They go from a host to its worker once, which keeps them; everybody else has their digests.

/** An image on its way from a host to its worker. */
export interface SentImage {
  mediaType: string;
  /** In base64. */
  data: string;
}

/** Images of one observation at most, and their bytes in all. */
const MOST_IMAGES = 8;
const MOST_BYTES = 4 * 2 ** 20;
const MEDIA_TYPE = /^image\/[a-z0-9][a-z0-9.+-]{0,60}$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Images as they were when they were shown, or what is wrong with them. */
export function readImages(answer: unknown): { value: SentImage[] } | { fault: string } {
  if (!Array.isArray(answer)) return { fault: 'gave images that are no array' };
  if (answer.length > MOST_IMAGES) {
    return { fault: `gave ${answer.length} images at once; at most ${MOST_IMAGES} are taken` };
  }
  const images: SentImage[] = [];
  let total = 0;
  for (const image of answer as readonly (Partial<Image> | null)[]) {
    const { mediaType, data } = image ?? {};
    if (typeof mediaType !== 'string' || !MEDIA_TYPE.test(mediaType)) {
      return {
        fault: `gave an image of the type ${String(mediaType).slice(0, 60)}; expected one such as image/png`,
      };
    }
    if (typeof data !== 'string' && !(data instanceof Uint8Array)) {
      return { fault: 'gave an image whose data is neither bytes nor base64' };
    }
    total += typeof data === 'string' ? Math.floor((data.length * 3) / 4) : data.byteLength;
    if (total > MOST_BYTES) {
      return { fault: `gave images of ${total} bytes or more at once; at most ${MOST_BYTES} are taken` };
    }
    if (typeof data === 'string' && (data.length % 4 !== 0 || !BASE64.test(data))) {
      return { fault: 'gave an image whose data is no base64' };
    }
    // A copy: whoever gave the bytes may write into them again.
    images.push({ mediaType, data: typeof data === 'string' ? data : Buffer.from(data).toString('base64') });
  }
  return { value: images };
}

export const imageBytes = ({ data }: SentImage): Buffer => Buffer.from(data, 'base64');

export function imageRefOf(image: SentImage): ImageRef {
  const bytes = imageBytes(image);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { type: 'image', mediaType: image.mediaType, sha256, bytes: bytes.length };
}

/** A text with a line in place of each image, and their references. */
export function withImages(
  text: string,
  images: readonly SentImage[] = [],
): Pick<Observation, 'text' | 'images'> {
  if (images.length === 0) return { text };
  const lines = images.map(({ mediaType }) => `[image ${mediaType}]`);
  return { text: [...(text === '' ? [] : [text]), ...lines].join('\n'), images: images.map(imageRefOf) };
}
