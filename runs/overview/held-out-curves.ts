import { setTimeout as delay } from 'node:timers/promises';
import { GradusError, isA } from '../../core/errors.ts';
import { rate } from '../../core/statistics/intervals.ts';
import { total } from '../../core/training/stage-policy.ts';
import { inParallel } from '../../store/in-parallel.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { stepsOf } from './steps.ts';

const PATIENCE_MS = 700;
/** Runs whose steps are read at a time: all of a long one are in memory then. */
const AT_ONCE = 4;

/** Held-out success of runs from measurement to measurement. */
export class HeldOutCurves {
  private readonly store: ObjectStore;
  private readonly patienceMs: number;
  private readonly reading = new Map<string, Promise<number[] | null>>();

  constructor(store: ObjectStore, { patienceMs = PATIENCE_MS } = {}) {
    this.store = store;
    this.patienceMs = patienceMs;
  }

  /**
   * Of those runs whose steps are read soon. The steps of a long run that nobody has looked at before take their time: they
   * are read on meanwhile, and whoever looks again has them.
   */
  async of(runs: readonly string[]): Promise<Map<string, number[]>> {
    const curves = new Map<string, number[]>();
    const until = performance.now() + this.patienceMs;
    const soon = async (run: string): Promise<void> => {
      if (!this.reading.has(run) && this.reading.size >= AT_ONCE) return;
      const left = Math.max(0, until - performance.now());
      const curve = await Promise.race([this.read(run), delay(left, null, { ref: false })]);
      if (curve !== null) curves.set(run, curve);
    };
    await inParallel(runs, soon, AT_ONCE);
    return curves;
  }

  /** null where the store does not say: a row stands without its curve. */
  private read(run: string): Promise<number[] | null> {
    const read = async (): Promise<number[] | null> => {
      try {
        const { steps } = await stepsOf(this.store, run);
        const looks = steps.map(({ heldOut }) => total(heldOut?.arms ?? []));
        return looks.filter(({ trials }) => trials > 0).map(rate);
      } catch (error) {
        if (isA(error, GradusError)) return null;
        throw error;
      } finally {
        this.reading.delete(run);
      }
    };
    const known = this.reading.get(run) ?? read();
    this.reading.set(run, known);
    return known;
  }
}
