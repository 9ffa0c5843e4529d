/** Tokens of a run of observations that are fed as one piece, at most and at least; fewer are fed one by one. */
const MOST = 64;
const LEAST = 16;

/**
 * The canonical pieces in which a continuation is fed, as their sizes in order: floating point gives other bits for
 * other pieces, so they must be a function of the history alone. `mask` is 1 where a token was sampled and 0 where it
 * was observed. A sampled token is a piece of its own, since the next one is drawn from it; but the last of a turn is
 * not fed before the observation comes, and begins its run.
 */
export function piecesOf(length: number, mask: readonly number[] | undefined): number[] {
  const pieces: number[] = [];
  const observed = (i: number): boolean => i < length && mask?.[i] === 0;
  for (let at = 0; at < length;) {
    let end = at + 1;
    while (observed(end)) end++;
    while (end - at >= LEAST) {
      const size = Math.min(MOST, end - at);
      pieces.push(size);
      at += size;
    }
    for (; at < end; at++) pieces.push(1);
  }
  return pieces;
}
