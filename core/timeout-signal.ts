/**
 * As `AbortSignal.timeout`, but safe among the signals of `AbortSignal.any`. Node 20 holds none of those, so that a limit is
 * lost when memory is collected. A signal with a listener is held until its time is over; it takes some 1.6 KB. `ms`:
 * milliseconds, of which Node takes whole ones below 2³¹.
 */
export function timeoutSignal(ms: number): AbortSignal {
  const limit = AbortSignal.timeout(Math.min(Math.ceil(ms), 2 ** 31 - 1));
  limit.addEventListener('abort', () => undefined, { once: true });
  return limit;
}
