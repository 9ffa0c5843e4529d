import { setMaxListeners } from 'node:events';

/** Does all at once. When one fails the others are called off, and have ended before the failure is thrown. */
export async function together<T>(
  signal: AbortSignal,
  items: readonly T[],
  work: (item: T, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const calledOff = new AbortController();
  const shared = AbortSignal.any([signal, calledOff.signal]);
  setMaxListeners(0, shared);
  let failure: { error: unknown } | undefined;
  await Promise.all(
    items.map(async (item) => {
      try {
        await work(item, shared);
      } catch (error) {
        failure ??= { error };
        calledOff.abort(error);
      }
    }),
  );
  if (failure) throw failure.error;
}
