import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { sha256Hex } from '../../store/digest.ts';
import type { BenchOptions } from '../bench.ts';
import { curvesPage } from './chart.ts';
import type { Panel } from './chart.ts';
import { trials, withTrials } from './trial.ts';
import type { Case, RunTrial, TrialSetting, Trial } from './trial.ts';

/** Where results go that a person does not place. */
const OUT = '.gradus/bench';

interface Comparison {
  /** Of its files: NAME.json has the curves, NAME.svg shows them. */
  name: string;
  title: string;
  setting: TrialSetting;
  cases: readonly Case[];
  /** Names of those that are run now. */
  only: ReadonlySet<string>;
  seeds: readonly number[];
  panels: readonly Panel[];
}

/** Trials at once: one for each core of the smallest machine that this is run on. */
const LANES = 2;

const kept = z.object({ trials: z.array(trials.extend({ digest: z.string() })) });
const nothing: z.output<typeof kept> = { trials: [] };

/**
 * The trials of every case and seed, in that order; both files are written anew after each trial. With `resume` what the
 * file has already of the same setting and case is taken, and stays in it where it is not run now.
 */
export async function compareMethods(comparison: Comparison, options: BenchOptions): Promise<Trial[]> {
  const { name, setting, cases, only, seeds } = comparison;
  const { say, out = OUT } = options;
  const file = path.join(out, `${name}.json`);
  const picture = path.join(out, `${name}.svg`);
  await mkdir(out, { recursive: true });
  const { trials: before } = options.resume ? kept.parse(JSON.parse(await readFile(file, 'utf8'))) : nothing;
  const jobs = cases.flatMap((one) =>
    seeds.map((seed) => ({ one, seed, digest: digestOf(setting, one, seed) })),
  );
  const done = jobs.map(({ digest }) => before.find((trial) => trial.digest === digest));
  const write = async (): Promise<void> => {
    const made = done.filter((trial) => trial !== undefined);
    await replaceFile(file, `${JSON.stringify({ setting, trials: made }, null, 1)}\n`);
    await replaceFile(picture, pictureOf(comparison, made));
  };
  // One after the other: two lanes may end at once.
  let written = Promise.resolve();
  await withTrials(LANES, options, async (lanes) => {
    const waiting = jobs.keys();
    const work = async (run: RunTrial): Promise<void> => {
      for (const job of waiting) {
        const { one, seed, digest } = jobs[job]!;
        if (done[job] || !only.has(one.name)) continue;
        const trial = await run(setting, one, seed);
        done[job] = { digest, ...trial };
        say(`  ${one.name}, seed ${seed}: ${inWords(trial)}`);
        written = written.then(write);
        await written;
      }
    };
    await Promise.all(lanes.map(work));
  });
  say(`curves: ${file}, ${picture}`);
  return done.filter((trial) => trial !== undefined);
}

function pictureOf({ title, setting, seeds, panels }: Comparison, made: readonly Trial[]): string {
  const lines = [
    `${setting.budget.toLocaleString('en')} sampled tokens of ${setting.environment} level ${setting.levels.join(', ')} each, from the same warm start; success on ${setting.tasks} unseen tasks, in %.`,
    `Lines: the mean of ${seeds.length} seed(s); bands: from the lowest to the highest; dashed: the warm start.`,
  ];
  return curvesPage({ title, lines }, panels, made, setting.budget);
}

/** Of all that a trial follows from, but for the code. */
const digestOf = (setting: TrialSetting, { alter, ...one }: Case, seed: number): string =>
  sha256Hex(new TextEncoder().encode(JSON.stringify({ setting, one, alter: String(alter), seed })));

/** A reader sees the old file or the new one. */
async function replaceFile(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text);
  await rename(`${file}.new`, file);
}

const inWords = ({ points, steps, seconds }: Trial): string =>
  `${points.map(({ success }) => (100 * success).toFixed(1)).join(' → ')} % in ${steps} steps, ${seconds.toFixed(0)} s`;
