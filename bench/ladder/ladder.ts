import { availableParallelism } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { addEntries } from '../../core/ladder/ledger.ts';
import { ids, QUEUES } from '../../core/names.ts';
import type { StepReport } from '../../core/ports.ts';
import type { CheckpointRef } from '../../core/refs.ts';
import type { ArmTally } from '../../core/requests/verification.ts';
import { meanWithInterval } from '../../core/statistics/intervals.ts';
import { total } from '../../core/training/stage-policy.ts';
import { PLUGINS } from '../../plugins/index.ts';
import { ensureChemistry } from '../../plugins/molecules/chemistry/python.ts';
import { rolloutsPrefix } from '../../store/keys.ts';
import { readLedger } from '../../store/ladder/ledger.ts';
import { ObjectStore } from '../../store/objects/object-store.ts';
import { loadTrajectories } from '../../store/rollout/trajectories.ts';
import type { evaluation } from '../../workflows/training/evaluation.ts';
import { benchRowsOf } from '../bench.ts';
import type { Bench, BenchOptions, BenchRow } from '../bench.ts';
import { signalsOf } from '../../test/support/histories.ts';
import { durableRun, withInstallation } from '../installations.ts';
import { ARMS, armSpec, judgedBy, warmSpec } from './arms.ts';
import type { ArmName } from './arms.ts';

/** When what the arms have learnt is compared, seconds: while the ladder spends its budget, and after. */
const TIMES = { full: [120, 240, 480], quick: [20] };

/**
 * What the ladder saves: the molecules demo's steps from one warm start with the same seeds, judged by the ladder or by
 * DFT of every valid candidate. No verdict is known when a training begins. What it has learnt is judged by DFT on the
 * same test tasks, at nobody's cost. Takes some 35 minutes, most of it where everything is sent to DFT.
 */
export const ladderStepsBench: Bench = async function* (options) {
  const { before, ladder, everything } = await withLaboratory(options, async (laboratory, warm) => {
    const trained = await laboratory.train('ladder', warm);
    // Last, because judging the ladder's then finds most of its verdicts made.
    const byDft = await laboratory.train('everything', warm);
    return {
      before: await laboratory.quality('warm', warm),
      ladder: await laboratory.judgeAt(trained, Infinity),
      everything: await laboratory.judgeAt(byDft, Infinity),
    };
  });
  options.say(`the warm start: ${inWords(before)}`);
  const row = comparing('ladder:steps', options);
  const anchor = `${ARMS.everything} in the same ${ladder.steps} steps`;
  yield qualityRow(row, 'the warm start', ladder, before);
  yield qualityRow(row, anchor, ladder, everything);
  const [dft, dftOfAll] = [ladder, everything].map(({ computed }) => computed['dft'] ?? 0) as [
    number,
    number,
  ];
  yield row(`DFT calculations, against ${anchor}`, 'calculations', 'less', dft, dftOfAll);
  yield row(`wall time, against ${anchor}`, 's', 'less', ladder.seconds, everything.seconds);
};

/**
 * What the ladder wins: the same as `ladderStepsBench`, against xTB alone and the fast tier alone, all for the same
 * time. Takes some 35 minutes.
 */
export const ladderTimeBench: Bench = async function* (options) {
  const times = options.quick ? TIMES.quick : TIMES.full;
  const row = comparing('ladder:time', options);
  yield* await withLaboratory(options, async (laboratory, warm) => {
    const train = (arm: ArmName) => laboratory.train(arm, warm, times.at(-1));
    const ladder = await train('ladder');
    const others = { xtb: await train('xtb'), fast: await train('fast') };
    const rows: BenchRow[] = [];
    for (const time of times) {
      const ours = await laboratory.judgeAt(ladder, time);
      for (const [arm, training] of Object.entries(others) as [ArmName, Training][]) {
        const theirs = await laboratory.judgeAt(training, time);
        rows.push(qualityRow(row, `${ARMS[arm]} in the same ${time} s`, ours, theirs));
      }
    }
    return rows;
  });
};

const comparing =
  (bench: string, { quick }: BenchOptions) =>
  (name: string, unit: string, better: 'more' | 'less', ours: number, anchor: number): BenchRow =>
    benchRowsOf(bench)(`${quick ? 'quick: ' : ''}${name}`, unit, better, [ours], [anchor]);

const qualityRow = (row: ReturnType<typeof comparing>, other: string, ours: Quality, anchor: Quality) =>
  row(`quality by DFT, against ${other}`, 'mean score', 'more', ours.score, anchor.score);

/** How an arm's training went. */
interface Training {
  /** Of its workflow, too. */
  arm: ArmName;
  /** Checkpoints that outlive the training: how many steps were made, and wall seconds since the run began. */
  kept: { checkpoint: CheckpointRef; steps: number; seconds: number }[];
  /** Verdicts computed, by verifier. */
  computed: Record<string, number>;
}

/** What DFT says of a checkpoint's answers; one that is no molecule within the limits scores 0. */
interface Quality {
  score: number;
  /** Of the mean, one standard deviation. */
  deviation: number;
  arms: ArmTally[];
}

/** Two-sided, of one standard deviation of a normal distribution. */
const ONE_DEVIATION = 0.682689492137;

function inWords({ score, deviation, arms }: Quality): string {
  const { successes, trials } = total(arms);
  return `DFT gives ${score.toFixed(3)} ± ${deviation.toFixed(3)} on average, and passes ${successes} of ${trials}`;
}

/** One installation, in which training waits for calculations, so that they may have all cores. */
async function withLaboratory<T>(
  options: BenchOptions,
  use: (laboratory: Laboratory, warm: CheckpointRef) => Promise<T>,
): Promise<T> {
  await ensureChemistry(options.say);
  const env = { GRADUS_CHEMISTRY_SLOTS: String(availableParallelism()) };
  return withInstallation({ ...options, plugins: PLUGINS, env }, async (client, { settings }) => {
    const store = await ObjectStore.connect(settings.store);
    try {
      options.say('— the warm start of all arms');
      const { result } = await durableRun(client, warmSpec(options), { ...options, workflowId: 'warm' });
      return await use(laboratoryOf(client, store, options), result.reference!);
    } finally {
      store.close();
    }
  });
}

type Laboratory = ReturnType<typeof laboratoryOf>;

/** Trains arms, and judges what they have learnt. */
function laboratoryOf(client: Client, store: ObjectStore, options: BenchOptions) {
  /** Trains for the spec's steps, or for so many seconds. No verdict is known when it begins. */
  async function train(arm: ArmName, from: CheckpointRef, seconds?: number): Promise<Training> {
    options.say(`— ${arm}${seconds === undefined ? '' : `, for ${seconds} s`}`);
    const known = await store.list('verdicts/');
    if (known.length > 0) await store.remove(known.map(({ key }) => key));
    const spec = armSpec(arm, { ...options, from: `warm@${from.step}`, endless: seconds !== undefined });
    const ended = new AbortController();
    /** A run that has ended needs no stopping. */
    const stopping = delay((seconds ?? 0) * 1000, undefined, { signal: ended.signal }).then(
      () => (seconds === undefined ? undefined : client.workflow.getHandle(arm).signal('stop')),
      () => undefined,
    );
    const running = durableRun(client, spec, { ...options, workflowId: arm });
    const { handle } = await running.finally(() => ended.abort());
    await stopping;
    const history = await handle.fetchHistory();
    const start = Number(history.events![0]!.eventTime!.seconds);
    const kept = signalsOf(history, 'stepReported').flatMap(({ at, value }) => {
      const { step, checkpoint } = value as StepReport;
      if (step % spec.retention.keepEvery !== 0) return [];
      return [{ checkpoint, steps: step, seconds: at / 1000 - start }];
    });
    const totals = Object.entries(addEntries({}, await readLedger(store, arm)));
    return { arm, kept, computed: Object.fromEntries(totals.map(([name, one]) => [name, one.computed])) };
  }

  /** Judges one answer to each of the report's tasks by DFT. */
  async function quality(name: string, checkpoint: CheckpointRef): Promise<Quality> {
    const { arms } = await client.workflow.execute<typeof evaluation>('evaluation', {
      args: [{ ...judgedBy(options), run: 'quality', name, step: 0, checkpoint }],
      workflowId: ids.evaluation('quality', name),
      taskQueue: QUEUES.orchestrator,
    });
    const scores: number[] = [];
    for (const { key } of await store.list(rolloutsPrefix('quality', name))) {
      if (!key.includes('.judged')) continue;
      const { episodes } = await loadTrajectories(store, (await store.head(key))!);
      for (const { outcome } of episodes) if (outcome && 'reward' in outcome) scores.push(outcome.reward);
    }
    const { mean, high } = meanWithInterval(scores, ONE_DEVIATION)!;
    return { score: mean, deviation: high - mean, arms };
  }

  /** What a training had come to by then: the newest checkpoint that was kept. */
  async function judgeAt(training: Training, time: number) {
    const { arm, kept, computed } = training;
    const last = kept.findLast(({ seconds }) => seconds <= time);
    if (!last) throw new Error(`${arm} made no step in ${time} s`);
    const { steps, seconds, checkpoint } = last;
    const judged = await quality(`${arm}-${steps}`, checkpoint);
    const work = Object.entries(computed).filter(([, count]) => count > 0);
    const counts = work.map(([verifier, count]) => `${count} × ${verifier}`).join(', ') || 'nothing';
    options.say(
      `${ARMS[arm]}: ${steps} steps, ${seconds.toFixed(0)} s; ${inWords(judged)}. Computed in all of its training: ${counts}.`,
    );
    return { ...judged, steps, seconds, computed };
  }

  return { train, quality, judgeAt };
}
