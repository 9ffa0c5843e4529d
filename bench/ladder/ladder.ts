import { availableParallelism } from 'node:os';
import { total } from '../../core/stage-policy.ts';
import { ensureChemistry } from '../../infra/setup/chemistry.ts';
import type { BenchOptions } from '../bench.ts';
import { benchRow } from '../bench-row.ts';
import type { BenchRow } from '../bench-row.ts';
import { withInstallation } from '../durable-run.ts';
import { ARMS } from './arms.ts';
import { Laboratory } from './laboratory.ts';
import type { Quality, Trained } from './laboratory.ts';

interface Measured extends Trained, Quality {}

/** What arms are compared by that get the same time: enough for the ladder to spend its budget and to go on. */
const SECONDS = { full: 240, quick: 20 };

/**
 * What the ladder saves and what it wins: trainings of the molecules demo, from one warm start, with the same seeds,
 * judged in four ways. The ladder and DFT of everything train for the demo's steps; the ladder, xTB alone and the fast
 * tier alone for the same time. Each training begins with no verdict known. What it has learnt is judged by DFT on the
 * same test tasks, at nobody's cost. Takes some fifty minutes, most of it where everything is sent to DFT.
 */
export async function* ladderBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const { quick, say } = options;
  await ensureChemistry(say);
  // Training waits for calculations, and so they may have all cores.
  const env = { GRADUS_CHEMISTRY_SLOTS: String(availableParallelism()) };
  const installation = { ...options, chemistry: true, env };
  const seconds = quick ? SECONDS.quick : SECONDS.full;
  const { before, ...measured } = await withInstallation(installation, async (client, { settings }) => {
    const laboratory = await Laboratory.open(client, settings, options);
    try {
      const warm = await laboratory.warmStart();
      const trained = {
        long: await laboratory.train('ladder', warm, { seconds }),
        xtb: await laboratory.train('xtb', warm, { seconds }),
        fast: await laboratory.train('fast', warm, { seconds }),
        ladder: await laboratory.train('ladder', warm, {}),
        // Last, because judging the others then finds most of its verdicts made.
        everything: await laboratory.train('everything', warm, {}),
      };
      const judged = async (name: keyof typeof trained): Promise<Measured> => ({
        ...trained[name],
        ...(await laboratory.quality(name, trained[name].checkpoint)),
      });
      return {
        before: await laboratory.quality('warm', warm),
        long: await judged('long'),
        xtb: await judged('xtb'),
        fast: await judged('fast'),
        ladder: await judged('ladder'),
        everything: await judged('everything'),
      };
    } finally {
      laboratory.close();
    }
  });

  say(`warm start: ${inWords(before)}`);
  for (const one of Object.values(measured)) {
    const work = Object.entries(one.computed)
      .filter(([, count]) => count > 0)
      .map(([verifier, count]) => `${count} × ${verifier}`);
    say(
      `${ARMS[one.arm]}: ${one.steps} steps, ${one.seconds.toFixed(0)} s, ${work.join(', ') || 'none'}; ${inWords(one)}`,
    );
  }

  const { long, xtb, fast, ladder, everything } = measured;
  const row = (name: string, unit: string, better: 'more' | 'less', ours: number, anchor: number) =>
    benchRow({
      bench: 'ladder',
      case: `${quick ? 'quick: ' : ''}${name}`,
      unit,
      better,
      ours: [ours],
      anchor: [anchor],
    });
  const quality = (ours: Quality, other: string, anchor: Quality) =>
    row(`quality by DFT, against ${other}`, 'mean score', 'more', ours.score, anchor.score);
  const steps = `${ARMS.everything} in the same ${ladder.steps} steps`;
  yield quality(ladder, 'the warm start', before);
  yield quality(ladder, steps, everything);
  yield row(
    `DFT calculations, against ${steps}`,
    'calculations',
    'less',
    ladder.computed['dft'] ?? 0,
    everything.computed['dft'] ?? 0,
  );
  yield row(`wall time, against ${steps}`, 's', 'less', ladder.seconds, everything.seconds);
  yield quality(long, `${ARMS.xtb} in the same ${seconds} s`, xtb);
  yield quality(long, `${ARMS.fast} in the same ${seconds} s`, fast);
}

function inWords({ score, deviation, arms }: Quality): string {
  const { successes, trials } = total(arms);
  return `DFT gives ${score.toFixed(3)} ± ${deviation.toFixed(3)} on average, and passes ${successes} of ${trials}`;
}
