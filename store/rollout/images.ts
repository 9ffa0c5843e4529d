import { callByCall } from '../../core/episode/call-by-call.ts';
import { GradusError } from '../../core/errors.ts';
import type { ImageRef, RolloutGroup } from '../../core/episode/episode.ts';
import { imageKey } from '../keys.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';

/** Keeps an image of a run's episodes; one that is there already is adopted. */
export async function putImage(
  store: ObjectStore,
  run: string,
  { sha256, mediaType }: ImageRef,
  bytes: Uint8Array,
  options: CallOptions = {},
): Promise<void> {
  const conflict = (key: string): GradusError =>
    new GradusError(
      'store',
      'image-conflict',
      `${key} is there with other bytes than its name says: it was damaged. Restore or delete it`,
    );
  await store.putSame(imageKey(run, sha256), bytes, { ...options, sha256, contentType: mediaType, conflict });
}

/** Throws GradusError('store', 'corrupt-object') where other bytes lie there, and where there are none. */
export const loadImage = (
  store: ObjectStore,
  run: string,
  { sha256, bytes }: ImageRef,
  options: CallOptions = {},
): Promise<Uint8Array> => store.get({ key: imageKey(run, sha256), sha256, bytes }, options);

/** Copies what a group shows from the run that sampled it to another one, which outlives that. */
export async function copyImages(
  store: ObjectStore,
  { episodes }: Pick<RolloutGroup, 'episodes'>,
  from: string,
  to: string,
  options: CallOptions = {},
): Promise<void> {
  if (from === to) return;
  const images = episodes.flatMap(({ turns }) =>
    turns.flatMap(callByCall).flatMap(({ observation }) => observation?.images ?? []),
  );
  for (const image of new Map(images.map((one) => [one.sha256, one])).values()) {
    await putImage(store, to, image, await loadImage(store, from, image, options), options);
  }
}
