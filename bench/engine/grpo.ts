import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { percent } from '../../core/percent.ts';
import { median } from '../../core/statistics/median.ts';
import { loadEnvironments } from '../../environments/families/index.ts';
import { parseSpec } from '../../spec/parse-spec.ts';
import { interleavedRuns, benchRowsOf } from '../bench.ts';
import type { Bench, BenchOptions, BenchRow } from '../bench.ts';
import { withTemporaryFolder } from '../installations.ts';
import { compareToTarget, reachedAt, showPoint } from './grpo/learning-curve.ts';
import type { CurvePoint } from './grpo/learning-curve.ts';
import { ownRun, trainWarmStart, withHeldOut } from './grpo/models.ts';
import type { HeldOutOptions, Measure } from './grpo/models.ts';
import { dumpTasks, grpoSettings, rlSpec, stageOf } from './grpo/specs.ts';
import type { GrpoSettings } from './grpo/specs.ts';
import { TrlRun } from './grpo/trl-run.ts';

interface Setting extends BenchOptions, HeldOutOptions {
  settings: GrpoSettings;
  measure: Measure;
  /** Where the models lie: the warm start that both begin with, and what they became. */
  folder: string;
  warm: string;
  /** Gives `use` a run of TRL with the warm start and the training tasks. */
  withTrl: <T>(use: (trl: TrlRun) => Promise<T>) => Promise<T>;
}

/**
 * The same GRPO by a durable run and by TRL's GRPOTrainer with its tool-calling loop, from the same warm-started weights:
 * the time of an RL step, in short runs that take turns, and then the time to the same held-out success, in one long run
 * of each, one after the other. Weights of both are measured in the same way, which is not in their time.
 */
export const grpoBench: Bench = async function* (options) {
  const { quick, say } = options;
  const settings = grpoSettings(quick);
  const environments = await loadEnvironments([]);
  const written = rlSpec(quick, 'warm', settings.maxSteps, settings.everySteps);
  const spec = parseSpec(written, 'bench', environments);
  const heldOut = { spec, environments, tasks: settings.heldOut };
  yield* await withTemporaryFolder((folder) =>
    withHeldOut(heldOut, options, async (measure) => {
      const [warm, tasks] = [path.join(folder, 'warm'), path.join(folder, 'tasks.json')];
      // No bound lets TRL take so many steps.
      const steps = settings.maxSteps * Math.ceil(settings.bound);
      await writeFile(tasks, JSON.stringify(dumpTasks(spec, stageOf(spec), steps, environments)));
      await trainWarmStart(warm, options);
      const before = await measure(warm);
      const withTrl: Setting['withTrl'] = (use) => TrlRun.with({ warm, tasks, spec }, say, use);
      // About the warm start's episodes, before anything is timed.
      const agreed = await withTrl((trl) => trl.agree(before.groups, spec, environments));
      say(`both sides agree about prompts, tool and reward of ${agreed} episodes`);
      const setting = { ...options, ...heldOut, settings, measure, folder, warm, withTrl };
      return [await stepTimes(setting), await timesToTarget(setting, before.success)];
    }),
  );
};

/** The first step of a run warms up. */
async function stepTimes(setting: Setting): Promise<BenchRow> {
  const { folder, warm, withTrl } = setting;
  const steps = setting.settings.shortSteps;
  const { ours, trl } = await interleavedRuns<'ours' | 'trl', readonly number[]>(
    'short runs',
    {
      ours: async () => (await ownRun({ warm, folder, steps, everySteps: steps + 1 }, setting)).stepSeconds,
      trl: () => withTrl((run) => run.advance(steps).then(() => run.stepSeconds)),
    },
    (seconds) => `${seconds.map((one) => one.toFixed(2)).join(' ')} s`,
    { ...setting, runs: setting.runs ?? (setting.quick ? 1 : 3), warmUps: 0 },
  );
  const { groupsPerStep, numGenerations } = stageOf(setting.spec);
  const name = `RL step of ${groupsPerStep} × ${numGenerations} episodes from the same weights, vs TRL's GRPOTrainer, AVX-512`;
  const later = (runs: (readonly number[])[]): number[] => runs.map((seconds) => median(seconds.slice(1)));
  return benchRowsOf('engine:grpo')(name, 's/step', 'less', later(ours), later(trl));
}

async function timesToTarget(setting: Setting, success: number): Promise<BenchRow> {
  const { settings, measure, folder, warm, say, signal } = setting;
  const start: CurvePoint = { step: 0, seconds: 0, success };
  say(`  both begin at ${showPoint(start)} of ${settings.heldOut} held-out tasks`);
  const long = { ...settings, warm, folder: path.join(folder, 'ours'), steps: settings.maxSteps };
  const own = await ownRun(long, setting);
  const ours = [start];
  for (const { step, seconds, folder: model } of own.snapshots) {
    ours.push({ step, seconds, success: (await measure(model)).success });
    say(`  ours: ${showPoint(ours.at(-1)!)}`);
  }
  const reached = reachedAt(ours, settings.target);
  if (!reached) throw new Error(`ours did not reach the target: ${ours.map(showPoint).join('; ')}`);

  const theirs = [start];
  const peakBytes = await setting.withTrl(async (trl) => {
    while (trl.seconds < settings.bound * reached.seconds && !reachedAt(theirs, settings.target)) {
      signal.throwIfAborted();
      await trl.advance(settings.everySteps);
      const measured = await measure(await trl.save(path.join(folder, 'trl')));
      theirs.push({ step: trl.stepSeconds.length, seconds: trl.seconds, success: measured.success });
      say(`  TRL: ${showPoint(theirs.at(-1)!)}`);
    }
    return trl.peakBytes;
  });
  const { seconds, outcome } = compareToTarget(reached, theirs, settings);
  const range = `from ${percent(success)} to ${percent(settings.target)} of ${settings.heldOut} held-out tasks`;
  const name = `GRPO run ${range}, vs TRL's GRPOTrainer, AVX-512: ${outcome}`;
  const megabytes = (bytes: number): number => Math.round(bytes / 1e6);
  return {
    ...benchRowsOf('engine:grpo')(name, 's', 'less', [reached.seconds], [seconds]),
    peakMegabytes: { ours: megabytes(own.peakBytes), anchor: megabytes(peakBytes) },
  };
}
