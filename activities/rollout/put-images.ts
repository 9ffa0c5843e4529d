import type { Called } from '../../environments/host/asks.ts';
import { imageBytes, imageRefOf } from '../../environments/host/images.ts';
import { putImage } from '../../store/rollout/images.ts';
import type { CallOptions, ObjectStore } from '../../store/objects/object-store.ts';

/** What a call brought, with what it showed kept in its run: named as it is, whatever its host called it. */
export async function putImages(
  store: ObjectStore,
  run: string,
  { images, ...called }: Called,
  options: CallOptions = {},
): Promise<Called> {
  if (!images) return called;
  const refs = images.map(imageRefOf);
  await Promise.all(refs.map((ref, i) => putImage(store, run, ref, imageBytes(images[i]!), options)));
  return { ...called, observation: { ...called.observation, images: refs } };
}
