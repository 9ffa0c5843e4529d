/** What may be written at once, and what more each second, bytes: enough to look for a fault, for ever. */
const AT_ONCE = 2 ** 20;
const EACH_SECOND = 2 ** 14;

export interface BoundedOutputOptions {
  /** Whose output it is, in words. */
  whose: string;
  write: (output: Uint8Array | string) => void;
  atOnce?: number;
  eachSecond?: number;
  /** Milliseconds. */
  now?: () => number;
}

/** Passes on what users' code prints, until that is too much for a log. What is left out is counted and said. */
export class BoundedOutput {
  private readonly options: Required<BoundedOutputOptions>;
  private allowance: number;
  private at: number;
  private leftOut = 0;

  constructor(options: BoundedOutputOptions) {
    this.options = {
      atOnce: AT_ONCE,
      eachSecond: EACH_SECOND,
      now: () => performance.now(),
      ...options,
    };
    this.allowance = this.options.atOnce;
    this.at = this.options.now();
  }

  write(output: Uint8Array): void {
    this.refill();
    // A while passes before more is taken: every cut has two lines of its own.
    if (this.leftOut > 0 && this.allowance < this.options.atOnce / 16) {
      this.leftOut += output.byteLength;
      return;
    }
    this.flush();
    const taken = output.subarray(0, Math.floor(this.allowance));
    if (taken.byteLength > 0) this.options.write(taken);
    this.allowance -= taken.byteLength;
    this.leftOut = output.byteLength - taken.byteLength;
    if (this.leftOut === 0) return;
    const { whose, atOnce, eachSecond } = this.options;
    this.options.write(
      `\n[${whose} prints more than ${atOnce} bytes at once and ${eachSecond} a second: the rest is left out]\n`,
    );
  }

  /** Says how much was left out, if anything was. */
  flush(): void {
    if (this.leftOut > 0)
      this.options.write(`[${this.leftOut} bytes of ${this.options.whose} were left out]\n`);
    this.leftOut = 0;
  }

  private refill(): void {
    const { now, atOnce, eachSecond } = this.options;
    const at = now();
    this.allowance = Math.min(atOnce, this.allowance + ((at - this.at) / 1000) * eachSecond);
    this.at = at;
  }
}
