import type { Span } from '../requests/span.ts';

/** When rollouts were under way that a step does not wait for, so that their spans are not yet known. */
export class UnderWay {
  private spans: Span[] = [];
  private readonly now: () => number;

  constructor(now: () => number) {
    this.now = now;
  }

  /** From now on until it ends, well or not. */
  during(work: Promise<unknown>): void {
    const span: Span = { part: 'rollout', start: this.now(), end: Infinity };
    this.spans.push(span);
    const end = (): void => void (span.end = this.now());
    work.then(end, end);
  }

  /** Of what ended after `start`, epoch milliseconds; Infinity is the end of what has none. Earlier ones are forgotten. */
  since(start: number): Span[] {
    this.spans = this.spans.filter(({ end }) => end > start);
    return this.spans;
  }
}
