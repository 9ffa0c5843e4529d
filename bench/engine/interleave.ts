import type { BenchOptions } from '../bench.ts';
import { benchRow } from '../bench-row.ts';
import type { BenchRow } from '../bench-row.ts';
import type { AnchorAnswer } from './anchor-process.ts';

/** One of the engines of a case. */
export interface Contestant {
  name: string;
  run(): Promise<AnchorAnswer>;
}

/**
 * Lets all engines do the same work in turn, `runs` times after one that warms up, and gives a row for each anchor:
 * `amount` / seconds.
 */
export async function* compare(
  { bench, name, unit, amount }: { bench: string; name: string; unit: string; amount: number },
  ours: Contestant,
  anchors: readonly Contestant[],
  { runs, say, signal }: Pick<BenchOptions, 'say' | 'signal'> & { runs: number },
): AsyncGenerator<BenchRow> {
  const all = [ours, ...anchors];
  const speeds = new Map(all.map((one) => [one, [] as number[]]));
  const peaks = new Map<Contestant, number>();
  for (let run = 0; run <= runs; run++) {
    const shown: string[] = [];
    for (const one of all) {
      signal.throwIfAborted();
      const { seconds, peakBytes } = await one.run();
      const speed = amount / seconds;
      shown.push(`${one.name} ${Math.round(speed)}`);
      peaks.set(one, peakBytes);
      if (run > 0) speeds.get(one)!.push(speed);
    }
    say(`  ${name}, run ${run} of ${runs}: ${shown.join(', ')} ${unit}`);
  }
  for (const anchor of anchors) {
    const row = benchRow({
      bench,
      case: `${name}, vs ${anchor.name}`,
      unit,
      better: 'more',
      ours: speeds.get(ours)!,
      anchor: speeds.get(anchor)!,
    });
    const megabytes = (one: Contestant): number => Math.round(peaks.get(one)! / 1e6);
    yield { ...row, peakMegabytes: { ours: megabytes(ours), anchor: megabytes(anchor) } };
  }
}
