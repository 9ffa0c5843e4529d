import { availableParallelism } from 'node:os';
import type { CheckpointRef } from '../../core/refs.ts';
import { total } from '../../core/training/stage-policy.ts';
import { PLUGINS } from '../../plugins/index.ts';
import { ensureChemistry } from '../../plugins/molecules/chemistry/python.ts';
import type { BenchOptions } from '../bench.ts';
import { benchRow } from '../bench-row.ts';
import type { BenchRow } from '../bench-row.ts';
import { withInstallation } from '../durable-run.ts';
import { ARMS } from './arms.ts';
import { Laboratory } from './laboratory.ts';
import type { Quality, Training } from './laboratory.ts';

/** When what the arms have learnt is compared, seconds: while the ladder spends its budget, and after. */
const TIMES = { full: [120, 240, 480], quick: [20] };

/**
 * What the ladder saves: the molecules demo's steps from one warm start with the same seeds, judged by the ladder or by
 * DFT of every valid candidate. No verdict is known when a training begins. What it has learnt is judged by DFT on the
 * same test tasks, at nobody's cost. Takes some 35 minutes, most of it where everything is sent to DFT.
 */
export async function* ladderStepsBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const { before, ladder, everything } = await withLaboratory(options, async (laboratory, warm) => {
    const ladder = await laboratory.train('ladder', warm);
    // Last, because judging the ladder's then finds most of its verdicts made.
    const everything = await laboratory.train('everything', warm);
    return {
      before: await laboratory.quality('warm', warm),
      ladder: await judgeAt(laboratory, ladder, Infinity, options),
      everything: await judgeAt(laboratory, everything, Infinity, options),
    };
  });
  options.say(`the warm start: ${inWords(before)}`);
  const { row, quality } = rowsOf('ladder:steps', options);
  const anchor = `${ARMS.everything} in the same ${ladder.steps} steps`;
  yield quality('the warm start', ladder, before);
  yield quality(anchor, ladder, everything);
  const dft = ({ computed }: Training): number => computed['dft'] ?? 0;
  yield row(`DFT calculations, against ${anchor}`, 'calculations', 'less', dft(ladder), dft(everything));
  yield row(`wall time, against ${anchor}`, 's', 'less', ladder.seconds, everything.seconds);
}

/**
 * What the ladder wins: the same as `ladderStepsBench`, against xTB alone and the fast tier alone, all for the same
 * time. Takes some 35 minutes.
 */
export async function* ladderTimeBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const times = options.quick ? TIMES.quick : TIMES.full;
  const measured = await withLaboratory(options, async (laboratory, warm) => {
    const seconds = times.at(-1)!;
    const ladder = await laboratory.train('ladder', warm, seconds);
    const xtb = await laboratory.train('xtb', warm, seconds);
    const fast = await laboratory.train('fast', warm, seconds);
    const all = [];
    for (const time of times) {
      all.push({
        time,
        ladder: await judgeAt(laboratory, ladder, time, options),
        xtb: await judgeAt(laboratory, xtb, time, options),
        fast: await judgeAt(laboratory, fast, time, options),
      });
    }
    return all;
  });
  const { quality } = rowsOf('ladder:time', options);
  for (const { time, ladder, xtb, fast } of measured) {
    yield quality(`${ARMS.xtb} in the same ${time} s`, ladder, xtb);
    yield quality(`${ARMS.fast} in the same ${time} s`, ladder, fast);
  }
}

async function withLaboratory<T>(
  options: BenchOptions,
  use: (laboratory: Laboratory, warm: CheckpointRef) => Promise<T>,
): Promise<T> {
  await ensureChemistry(options.say);
  // Training waits for calculations, and so they may have all cores.
  const env = { GRADUS_CHEMISTRY_SLOTS: String(availableParallelism()) };
  return withInstallation({ ...options, plugins: PLUGINS, env }, async (client, { settings }) => {
    const laboratory = await Laboratory.open(client, settings, options);
    try {
      return await use(laboratory, await laboratory.warmStart());
    } finally {
      laboratory.close();
    }
  });
}

/** What a training had come to by then: the newest checkpoint that was kept. */
async function judgeAt(
  laboratory: Laboratory,
  training: Training,
  time: number,
  { say }: BenchOptions,
): Promise<Training & Quality & { steps: number; seconds: number }> {
  const last = training.kept.findLast(({ seconds }) => seconds <= time);
  if (!last) throw new Error(`${training.run} made no step in ${time} s`);
  const { steps, seconds, checkpoint } = last;
  const quality = await laboratory.quality(`${training.run}-${steps}`, checkpoint);
  const work = Object.entries(training.computed).filter(([, count]) => count > 0);
  say(
    `${ARMS[training.arm]}: ${steps} steps, ${seconds.toFixed(0)} s; ${inWords(quality)}. Computed in all of its ` +
      `training: ${work.map(([verifier, count]) => `${count} × ${verifier}`).join(', ') || 'nothing'}.`,
  );
  return { ...training, ...quality, steps, seconds };
}

function rowsOf(bench: string, { quick }: BenchOptions) {
  const row = (name: string, unit: string, better: 'more' | 'less', ours: number, anchor: number) =>
    benchRow({
      bench,
      case: `${quick ? 'quick: ' : ''}${name}`,
      unit,
      better,
      ours: [ours],
      anchor: [anchor],
    });
  const quality = (other: string, ours: Quality, anchor: Quality) =>
    row(`quality by DFT, against ${other}`, 'mean score', 'more', ours.score, anchor.score);
  return { row, quality };
}

function inWords({ score, deviation, arms }: Quality): string {
  const { successes, trials } = total(arms);
  return `DFT gives ${score.toFixed(3)} ± ${deviation.toFixed(3)} on average, and passes ${successes} of ${trials}`;
}
