/** What can be made to go wrong, by the name under which `POST /faults` switches it on. */
export const FAULTS = {
  /** 503 with `Retry-After: seconds` (default 1) to requests for tokens. */
  unavailable: 'http',
  /** 503 as the server's own queue answers it when it is full. */
  'queue-full': 'http',
  /** No answer until `POST /faults/release`. */
  silent: 'http',
  /** The connection ends in the middle of the body. */
  cut: 'http',
  /** 200 and no body. */
  empty: 'http',
  /** Tokens without log-probabilities. */
  'no-logprobs': 'answer',
  /** `weight_versions` name a version (`version`, default "somebody-elses") that nobody set. */
  'foreign-version': 'answer',
  /** Ends after `tokens` tokens (default 1) with finish reason abort. */
  abort: 'engine',
  /** `ms` for each token (default 20). */
  slow: 'engine',
  /** A load of weights or of an adapter answers success, and nothing is loaded. */
  'load-forgotten': 'engine',
  /** A reload leaves the matrix behind the last layer, as vLLM on processors does where it is that of the embedding. */
  'head-forgotten': 'engine',
  /** An adapter's name is answered by the base. */
  'base-for-adapter': 'engine',
  /** A reset of the prefix cache answers that it did nothing, and did nothing. */
  'reset-refused': 'engine',
  /** A reset of the prefix cache answers success, and did nothing: what old weights computed stays. */
  'reset-forgotten': 'engine',
} as const;

export type FaultName = keyof typeof FAULTS;

export interface Fault {
  name: FaultName;
  /** How often; default: until it is switched off. */
  times?: number;
  seconds?: number;
  version?: string;
  tokens?: number;
  ms?: number;
}

/** The faults that are on. */
export class Faults {
  private readonly on = new Map<FaultName, Fault>();
  private waiting: (() => void)[] = [];

  set(fault: Fault): void {
    if (!Object.hasOwn(FAULTS, fault.name)) {
      throw new RangeError(`no fault is called ${fault.name}: there are ${Object.keys(FAULTS).join(', ')}`);
    }
    this.on.set(fault.name, { ...fault });
  }

  peek(name: FaultName): Fault | undefined {
    return this.on.get(name);
  }

  /** The fault, once more, where it is on. */
  take(name: FaultName): Fault | undefined {
    const fault = this.on.get(name);
    if (fault?.times === undefined) return fault;
    if (fault.times <= 1) this.on.delete(name);
    fault.times--;
    return fault;
  }

  clear(): void {
    this.on.clear();
    this.release();
  }

  /** Over when `release` is called. */
  released(): Promise<void> {
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  release(): void {
    for (const go of this.waiting) go();
    this.waiting = [];
  }
}
