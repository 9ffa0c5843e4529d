import { DIAGNOSES } from '../../core/diagnosis/alarm.ts';
import type { DiagnosisName } from '../../core/diagnosis/alarm.ts';
import { diagnose, undiagnosed } from '../../core/diagnosis/diagnose.ts';
import type { Setting } from '../../core/diagnosis/diagnosis.ts';
import { wilson } from '../../core/statistics/intervals.ts';
import type { BenchOptions } from '../bench.ts';
import { benchRow, median } from '../bench-row.ts';
import type { BenchRow, Samples } from '../bench-row.ts';
import { KINDS, ONSET, SICKNESSES, stageOf, STRENGTHS } from './simulated-policy.ts';
import type { Kind, Sickness, Strength, Told } from './simulated-policy.ts';

const STEPS = 100;
/** Of each kind of healthy stages, and of each sickness and strength. */
const STAGES = 64;
const QUICK_STAGES = 1;
/** Healthy stages by which no rule was mended: those were the first ones. */
const UNSEEN = 1000;

const SETTING: Setting = {
  outcomeWeight: 1,
  lateEpisodes: false,
  klTo: 'reference',
  clipsSequences: false,
  contrast: 'task',
  temperatureMoves: false,
  look: { left: 1, looks: 10 },
};

/** The alarm that each sickness is to raise. */
export const EXPECTED: Record<Sickness, DiagnosisName> = {
  length: 'length-explosion',
  ghosts: 'tool-hallucination',
  errors: 'tool-errors',
  'cut-off': 'truncation',
  loops: 'loops',
  stutter: 'loops',
  blind: 'no-contrast',
  collapse: 'entropy-collapse',
  trap: 'echo-trap',
  hacking: 'reward-hacking',
};

/** Policies that a sickness can befall: they are neither done nor without hope when it begins. */
const BEFALLEN: readonly Kind[] = ['usual', 'late', 'clumsy', 'sure', 'levels'];

/** At which steps each alarm was raised. */
export function raisedIn(stage: readonly Told[]): Map<DiagnosisName, number[]> {
  let diagnosed = undiagnosed();
  const raised = new Map<DiagnosisName, number[]>();
  for (const facts of stage) {
    const result = diagnose(diagnosed, facts, SETTING);
    diagnosed = result.diagnosed;
    for (const { name, stageStep } of result.alarms)
      raised.set(name, [...(raised.get(name) ?? []), stageStep]);
  }
  return raised;
}

/**
 * How often alarms are raised in stages of simulated policies, in percent of the stages, with 95 % intervals (Wilson) on
 * the progress lines: each alarm where nothing goes wrong, and each one that is meant where something does.
 */
export async function* alarmsBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const count = options.runs ?? (options.quick ? QUICK_STAGES : STAGES);
  yield* falseAlarms(count, options);
  for (const sickness of SICKNESSES)
    for (const strength of STRENGTHS) yield* power(sickness, strength, count, options);
}

async function* falseAlarms(count: number, { signal, say }: BenchOptions): AsyncGenerator<BenchRow> {
  const names: { kind: Kind; raised: DiagnosisName[] }[] = [];
  for (const kind of KINDS) {
    for (let seed = UNSEEN; seed < UNSEEN + count; seed++) {
      signal.throwIfAborted();
      const stage = await stageOf(seed, { kind, steps: STEPS });
      names.push({ kind, raised: [...raisedIn(stage).keys()] });
    }
  }
  for (const name of DIAGNOSES) {
    const hits = names.filter(({ raised }) => raised.includes(name));
    const where = KINDS.map((kind) => ({ kind, hits: hits.filter((hit) => hit.kind === kind).length }))
      .filter((one) => one.hits > 0)
      .map((one) => `${one.hits} ${one.kind}`);
    yield row(`healthy: ${name}`, 'less', hits.length, names.length, say, where.join(', '));
  }
}

async function* power(
  sickness: Sickness,
  strength: Strength,
  count: number,
  { signal, say }: BenchOptions,
): AsyncGenerator<BenchRow> {
  const name = EXPECTED[sickness];
  const delays: number[] = [];
  for (let seed = 0; seed < count; seed++) {
    signal.throwIfAborted();
    const kind = BEFALLEN[seed % BEFALLEN.length]!;
    const stage = await stageOf(seed, { kind, steps: STEPS, ill: { sickness, strength } });
    const first = raisedIn(stage)
      .get(name)
      ?.find((step) => step > ONSET);
    if (first !== undefined) delays.push(first - ONSET);
  }
  const how = delays.length === 0 ? '' : `after ${median(delays)} steps in the median`;
  yield row(`${strength} ${sickness}: ${name}`, 'more', delays.length, count, say, how);
}

function row(
  what: string,
  better: Samples['better'],
  hits: number,
  count: number,
  say: BenchOptions['say'],
  more: string,
): BenchRow {
  const { low, high } = wilson({ successes: hits, trials: count }, 0.95);
  const interval = `[${(100 * low).toFixed(1)}, ${(100 * high).toFixed(1)}] %`;
  say(`  ${what}: ${hits} of ${count} stages ${interval}${more && `, ${more}`}`);
  return benchRow({
    bench: 'alarms',
    case: what,
    unit: '% of stages',
    better,
    ours: [(100 * hits) / count],
    anchor: null,
  });
}
