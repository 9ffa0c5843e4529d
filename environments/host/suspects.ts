interface Record {
  /** Deaths in a row. */
  deaths: number;
  /** Calls that must go well before it is trusted again. */
  probation: number;
  barredUntil: number;
  reason: string;
}

const PROBATION = 32;
/** After so many deaths in a row a function is not called for a while. */
const MOST_DEATHS = 6;
const BARRED_MS = 5 * 60_000;

/** Functions over which hosts died: they are called alone, and when nothing comes of that, not at all for a while. */
export class Suspects {
  private readonly records = new Map<string, Record>();
  private readonly now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.now = now;
  }

  has(environment: string, name: string): boolean {
    return this.records.has(keyOf(environment, name));
  }

  /** Why it is not called now; null when it may be. */
  barred(environment: string, name: string): string | null {
    const record = this.records.get(keyOf(environment, name));
    if (!record || this.now() >= record.barredUntil) return null;
    return `${record.reason}; so it did ${record.deaths} times in a row, and is left alone for a while`;
  }

  blame(environment: string, name: string, reason: string): void {
    const deaths = (this.records.get(keyOf(environment, name))?.deaths ?? 0) + 1;
    const barredUntil = deaths < MOST_DEATHS ? 0 : this.now() + BARRED_MS;
    this.records.set(keyOf(environment, name), { deaths, probation: PROBATION, barredUntil, reason });
  }

  acquit(environment: string, name: string): void {
    const record = this.records.get(keyOf(environment, name));
    if (!record) return;
    record.deaths = 0;
    record.barredUntil = 0;
    if (--record.probation === 0) this.records.delete(keyOf(environment, name));
  }
}

const keyOf = (environment: string, name: string): string => JSON.stringify([environment, name]);
