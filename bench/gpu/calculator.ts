import { rate } from '../../core/statistics/intervals.ts';
import { total } from '../../core/training/stage-policy.ts';
import type { Bench } from '../bench.ts';
import { benchRow } from '../bench-row.ts';
import type { BenchRow } from '../bench-row.ts';
import { cutCalculator, sizeOf } from '../bench-specs.ts';
import { durableRun, withInstallation } from '../durable-run.ts';
import type { Device } from './device.ts';

interface Measured {
  seconds: number;
  weights: string;
  success: number;
}

/** A short durable run of the calculator that learns on the GPU, twice, and once on the processor. */
export const calculatorOnGpu = (device: Device): Bench =>
  async function* (options) {
    const spec = cutCalculator(
      options.quick ? { updates: 4, steps: 2, reports: 32 } : { updates: 200, steps: 8, reports: 256 },
    );
    const run = (backend: string): Promise<Measured> =>
      withInstallation({ ...options, env: { GRADUS_LEARNER_BACKEND: backend } }, async (client) => {
        const { result, seconds } = await durableRun(client, spec, options);
        const success = result.after === null ? 0 : rate(total(result.after.arms));
        options.say(`  learner on the ${backend}: ${seconds.toFixed(1)} s, success ${success.toFixed(3)}`);
        return { seconds, weights: result.checkpoint.weights, success };
      });
    const first = await run(device.kind);
    const again = await run(device.kind);
    const processor = await run('cpu');
    const bench = 'gpu:calculator';
    const size = sizeOf(spec);
    const rows: BenchRow[] = [
      benchRow({
        bench,
        case: `${size}: the same weights, to the bit, of two runs`,
        unit: 'of 1',
        better: 'more',
        ours: [first.weights === again.weights ? 1 : 0],
        anchor: 1,
      }),
      benchRow({
        bench,
        case: `${size}: success after, against the run that learns on the processor`,
        unit: 'success',
        better: 'more',
        ours: [first.success, again.success],
        anchor: [processor.success],
      }),
      benchRow({
        bench,
        case: `${size}: the whole run, against the run that learns on the processor`,
        unit: 's',
        better: 'less',
        ours: [first.seconds, again.seconds],
        anchor: [processor.seconds],
      }),
    ];
    yield* rows;
  };
