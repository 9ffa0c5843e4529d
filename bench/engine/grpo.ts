import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseSpec } from '../../spec/parse-spec.ts';
import { percent } from '../../core/percent.ts';
import type { RolloutGroup } from '../../core/episode/episode.ts';
import { loadEnvironments } from '../../environments/families/index.ts';
import type { BenchOptions } from '../bench.ts';
import { benchRow, median } from '../bench-row.ts';
import type { BenchRow } from '../bench-row.ts';
import { withTemporaryFolder } from '../durable-run.ts';
import { withHeldOut } from './grpo/held-out.ts';
import type { HeldOutOptions, Measure } from './grpo/held-out.ts';
import { compareToTarget, reachedAt, showPoint } from './grpo/learning-curve.ts';
import type { CurvePoint } from './grpo/learning-curve.ts';
import { ownRun, trainWarmStart } from './grpo/own-run.ts';
import { dumpTasks, grpoSettings, rlSpec, stageOf } from './grpo/specs.ts';
import type { GrpoSettings } from './grpo/specs.ts';
import { TrlRun } from './grpo/trl-run.ts';

const RUNS = 3;

interface Setting extends BenchOptions {
  settings: GrpoSettings;
  heldOut: HeldOutOptions;
  measure: Measure;
  /** Where the models lie: the warm start that both begin with, and what they became. */
  folder: string;
  warm: string;
  /** Held-out success of the warm start. */
  success: number;
  /** File of the training tasks. */
  tasks: string;
}

/**
 * The same GRPO by a durable run and by TRL's GRPOTrainer with its tool-calling loop, from the same warm-started weights:
 * the time of an RL step, in short runs that take turns, and then the time to the same held-out success, in one long run
 * of each, one after the other. Weights of both are measured in the same way, which is not in their time.
 */
export async function* grpoBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const settings = grpoSettings(options.quick);
  const environments = await loadEnvironments([]);
  const spec = parseSpec(
    rlSpec(options.quick, 'warm', settings.maxSteps, settings.everySteps),
    'bench',
    environments,
  );
  const heldOut = { spec, environments, tasks: settings.heldOut };
  const rows: BenchRow[] = [];
  await withTemporaryFolder((folder) =>
    withHeldOut(heldOut, options.say, async (measure) => {
      const [warm, tasks] = [path.join(folder, 'warm'), path.join(folder, 'tasks.json')];
      // No bound lets TRL take so many steps.
      const steps = settings.maxSteps * Math.ceil(settings.bound);
      await writeFile(tasks, JSON.stringify(dumpTasks(spec, stageOf(spec), steps, environments)));
      await trainWarmStart(warm, options);
      const before = await measure(warm);
      const setting = {
        ...options,
        settings,
        heldOut,
        measure,
        folder,
        warm,
        tasks,
        success: before.success,
      };
      await seeThatTheyAgree(setting, before.groups);
      rows.push(await stepTimes(setting));
      rows.push(await timesToTarget(setting));
    }),
  );
  yield* rows;
}

const startTrl = ({ warm, tasks, heldOut: { spec }, say }: Setting): Promise<TrlRun> =>
  TrlRun.start({ warm, tasks, spec }, say);

/** About the warm start's episodes, before anything is timed. */
async function seeThatTheyAgree(setting: Setting, groups: readonly RolloutGroup[]): Promise<void> {
  const trl = await startTrl(setting);
  try {
    const episodes = await trl.agree(groups, setting.heldOut.spec, setting.heldOut.environments);
    setting.say(`both sides agree about prompts, tool and reward of ${episodes} episodes`);
  } finally {
    await trl.close();
  }
}

/** The first step of a run warms up. */
async function stepTimes(setting: Setting): Promise<BenchRow> {
  const { settings, folder, warm, say, signal } = setting;
  const runs = setting.runs ?? (setting.quick ? 1 : RUNS);
  const [ours, theirs]: [number[], number[]] = [[], []];
  for (let run = 1; run <= runs; run++) {
    signal.throwIfAborted();
    const steps = settings.shortSteps;
    const own = await ownRun({ warm, folder, steps, everySteps: steps + 1 }, setting);
    ours.push(median(own.stepSeconds.slice(1)));
    const trl = await startTrl(setting);
    try {
      await trl.advance(steps);
    } finally {
      await trl.close();
    }
    theirs.push(median(trl.stepSeconds.slice(1)));
    const shown = (seconds: readonly number[]): string => seconds.map((one) => one.toFixed(2)).join(' ');
    say(`  short run ${run} of ${runs}: ours ${shown(own.stepSeconds)}, TRL ${shown(trl.stepSeconds)} s`);
  }
  const { groupsPerStep, numGenerations } = stageOf(setting.heldOut.spec);
  return benchRow({
    bench: 'engine:grpo',
    case: `RL step of ${groupsPerStep} × ${numGenerations} episodes from the same weights, vs TRL's GRPOTrainer, AVX-512`,
    unit: 's/step',
    better: 'less',
    ours,
    anchor: theirs,
  });
}

async function timesToTarget(setting: Setting): Promise<BenchRow> {
  const { settings, measure, folder, warm, say } = setting;
  const start: CurvePoint = { step: 0, seconds: 0, success: setting.success };
  say(`  both begin at ${showPoint(start)} of ${settings.heldOut} held-out tasks`);

  const own = await ownRun(
    { warm, folder: path.join(folder, 'ours'), steps: settings.maxSteps, ...settings },
    setting,
  );
  const ours = [start];
  for (const { step, seconds, folder: model } of own.snapshots) {
    ours.push({ step, seconds, success: (await measure(model)).success });
    say(`  ours: ${showPoint(ours.at(-1)!)}`);
  }
  const reached = reachedAt(ours, settings.target);
  if (!reached) throw new Error(`ours did not reach the target: ${ours.map(showPoint).join('; ')}`);

  const theirs = [start];
  const trl = await startTrl(setting);
  try {
    const limit = settings.bound * reached.seconds;
    while (trl.seconds < limit && !reachedAt(theirs, settings.target)) {
      setting.signal.throwIfAborted();
      await trl.advance(settings.everySteps);
      const { success } = await measure(await trl.save(path.join(folder, 'trl')));
      theirs.push({ step: trl.stepSeconds.length, seconds: trl.seconds, success });
      say(`  TRL: ${showPoint(theirs.at(-1)!)}`);
    }
  } finally {
    await trl.close();
  }
  const { seconds, outcome } = compareToTarget(reached, theirs, settings);
  const row = benchRow({
    bench: 'engine:grpo',
    case: `GRPO run from ${percent(start.success)} to ${percent(settings.target)} of ${settings.heldOut} held-out tasks, vs TRL's GRPOTrainer, AVX-512: ${outcome}`,
    unit: 's',
    better: 'less',
    ours: [reached.seconds],
    anchor: [seconds],
  });
  const megabytes = (bytes: number): number => Math.round(bytes / 1e6);
  return { ...row, peakMegabytes: { ours: megabytes(own.peakBytes), anchor: megabytes(trl.peakBytes) } };
}
