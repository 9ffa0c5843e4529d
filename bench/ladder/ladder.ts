import { availableParallelism } from 'node:os';
import { total } from '../../core/stage-policy.ts';
import { ensureChemistry } from '../../infra/setup/chemistry.ts';
import type { BenchOptions } from '../bench.ts';
import { benchRow } from '../bench-row.ts';
import type { BenchRow } from '../bench-row.ts';
import { withInstallation } from '../durable-run.ts';
import { ARMS } from './arms.ts';
import type { ArmName } from './arms.ts';
import { Laboratory } from './laboratory.ts';
import type { Quality, Trained } from './laboratory.ts';

interface Measured extends Trained, Quality {}

/**
 * What the ladder saves and what it wins: one training of the molecules demo, from one warm start, with the same seeds,
 * judged in four ways. The ladder and DFT of everything train for the same steps, xTB alone and the fast tier alone for
 * as long as the ladder took. Each arm begins with no verdict known. What it has learnt is judged by DFT on the same
 * test tasks, at no arm's cost. Takes about an hour, nearly all of it in the arm that sends everything to DFT.
 */
export async function* ladderBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const { quick, say } = options;
  await ensureChemistry(say);
  // Training waits for calculations, and so they may have all cores.
  const env = { GRADUS_CHEMISTRY_SLOTS: String(availableParallelism()) };
  const installation = { ...options, chemistry: true, env };
  const measured = await withInstallation(installation, async (client, { settings }) => {
    const laboratory = await Laboratory.open(client, settings, options);
    try {
      const warm = await laboratory.warmStart();
      const ladder = await laboratory.train('ladder', warm, {});
      const asLong = { seconds: ladder.seconds };
      const trained = {
        xtb: await laboratory.train('xtb', warm, asLong),
        fast: await laboratory.train('fast', warm, asLong),
        ladder,
        // Last, because judging the others then finds most of its verdicts made.
        everything: await laboratory.train('everything', warm, {}),
      };
      const before = await laboratory.quality('warm', warm);
      const judged = {} as Record<ArmName, Measured>;
      for (const arm of Object.keys(ARMS) as ArmName[]) {
        judged[arm] = { ...trained[arm], ...(await laboratory.quality(arm, trained[arm].checkpoint)) };
      }
      return { before, ...judged };
    } finally {
      laboratory.close();
    }
  });

  const { before, ladder, ...others } = measured;
  say(`warm start: ${inWords(before)}`);
  for (const [arm, one] of [['ladder', ladder], ...Object.entries(others)] as [ArmName, Measured][]) {
    const work = Object.entries(one.computed)
      .filter(([, count]) => count > 0)
      .map(([verifier, count]) => `${count} × ${verifier}`);
    say(
      `${ARMS[arm]}: ${one.steps} steps, ${one.seconds.toFixed(0)} s, ${work.join(', ') || 'none'}; ${inWords(one)}`,
    );
  }

  const row = (name: string, unit: string, better: 'more' | 'less', ours: number, anchor: number | null) =>
    benchRow({
      bench: 'ladder',
      case: `${quick ? 'quick: ' : ''}${name}`,
      unit,
      better,
      ours: [ours],
      anchor,
    });
  const versus = (arm: keyof typeof others, given: string) =>
    row(
      `quality by DFT, against ${ARMS[arm]} in the same ${given}`,
      'mean score',
      'more',
      ladder.score,
      others[arm].score,
    );
  yield row('quality by DFT, against the warm start', 'mean score', 'more', ladder.score, before.score);
  yield versus('everything', 'steps');
  yield row(
    `DFT calculations in the same steps, against ${ARMS.everything}`,
    'calculations',
    'less',
    ladder.computed['dft'] ?? 0,
    others.everything.computed['dft'] ?? 0,
  );
  yield row(
    `wall time of the same steps, against ${ARMS.everything}`,
    's',
    'less',
    ladder.seconds,
    others.everything.seconds,
  );
  yield versus('xtb', 'time');
  yield versus('fast', 'time');
}

function inWords({ score, deviation, arms }: Quality): string {
  const { successes, trials } = total(arms);
  return `DFT gives ${score.toFixed(3)} ± ${deviation.toFixed(3)} on average, and passes ${successes} of ${trials}`;
}
