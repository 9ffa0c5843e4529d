/**
 * Long work that can be interrupted wherever it yields, and returns its result. When it is interrupted changes nothing
 * of what it computes.
 */
export type InPieces<T> = Generator<undefined, T, undefined>;

/** How long the event loop is kept, ms. */
const SLICE_MS = 10;

/** To the end without a break: for whoever has nothing else to do. */
export function atOnce<T>(work: InPieces<T>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

/** To the end, with turns of the event loop in between. Rejects with the signal's reason. */
export async function inTurns<T>(work: InPieces<T>, signal?: AbortSignal): Promise<T> {
  const turns = new EventLoopTurns(signal);
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    if (turns.due) await turns.take();
  }
}

/** For a loop whose rounds are awaited anyway: `if (turns.due) await turns.take()` between two of them. */
export class EventLoopTurns {
  private since = performance.now();
  private readonly signal: AbortSignal | undefined;

  constructor(signal?: AbortSignal) {
    this.signal = signal;
  }

  get due(): boolean {
    return performance.now() - this.since > SLICE_MS;
  }

  /** Rejects with the signal's reason. */
  async take(): Promise<void> {
    this.signal?.throwIfAborted();
    await ownTurn();
    this.since = performance.now();
  }
}

const waiting: (() => void)[] = [];

/** A turn of the event loop that no other work in pieces has a part of: many at once keep it no longer than one. */
export function ownTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(next);
  });
}

function next(): void {
  // What is scheduled in here comes one turn later.
  if (waiting.length > 1) setImmediate(next);
  waiting.shift()!();
}
