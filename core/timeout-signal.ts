/**
 * As `AbortSignal.timeout`, and in the midst of others as well: of signals of time that are given to `AbortSignal.any` Node 20
 * holds none, so that they are gone, and with them the limit, once memory is collected. One that has a listener is held until
 * its time is over, with some 1.6 KB. `ms`: milliseconds.
 */
export function timeoutSignal(ms: number): AbortSignal {
  const limit = AbortSignal.timeout(ms);
  limit.addEventListener('abort', () => undefined, { once: true });
  return limit;
}
