import { DIAGNOSES } from '../../core/diagnosis/alarm.ts';
import type { DiagnosisName } from '../../core/diagnosis/alarm.ts';
import { diagnose, undiagnosed } from '../../core/diagnosis/diagnose.ts';
import type { DiagnosisSetting } from '../../core/diagnosis/diagnosis.ts';
import { wilson } from '../../core/statistics/intervals.ts';
import { median } from '../../core/statistics/median.ts';
import { benchRowsOf } from '../bench.ts';
import type { Bench, BenchRow } from '../bench.ts';
import { KINDS, ONSET, SICKNESSES, simulatedStage, STRENGTHS } from './simulated-policy.ts';
import type { Kind, Sickness, Told } from './simulated-policy.ts';

const STEPS = 100;
/** Of each kind of healthy stages, and of each sickness and strength. */
const STAGES = 64;
const QUICK_STAGES = 1;
/** Healthy stages by which no rule was mended: those were the first ones. */
const UNSEEN = 1000;

const SETTING: Omit<DiagnosisSetting, 'asynchronous'> = {
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
  queue: 'stale-samples',
  drift: 'low-ess',
};

/** Policies that are neither done nor without hope when a sickness begins. */
const BEFALLEN: readonly Kind[] = ['usual', 'late', 'clumsy', 'sure', 'levels'];

/** Policies that a sickness can befall. */
export const befallen = (sickness: Sickness): readonly Kind[] =>
  sickness === 'queue' || sickness === 'drift' ? ['overlapped'] : BEFALLEN;

/** At which steps each alarm was raised. */
export function raisedIn(stage: readonly Told[]): Map<DiagnosisName, number[]> {
  let diagnosed = undiagnosed();
  const raised = new Map<DiagnosisName, number[]>();
  for (const facts of stage) {
    const { asynchronous = null } = facts;
    const result = diagnose(diagnosed, facts, { ...SETTING, asynchronous });
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
export const alarmsBench: Bench = async function* (options) {
  const { say, signal } = options;
  const count = options.runs ?? (options.quick ? QUICK_STAGES : STAGES);
  const row = (name: string, better: 'more' | 'less', hits: number, of: number, more: string): BenchRow => {
    const { low, high } = wilson({ successes: hits, trials: of }, 0.95);
    const interval = `[${(100 * low).toFixed(1)}, ${(100 * high).toFixed(1)}] %`;
    say(`  ${name}: ${hits} of ${of} stages ${interval}${more && `, ${more}`}`);
    return benchRowsOf('alarms')(name, '% of stages', better, [(100 * hits) / of]);
  };

  const healthy: { kind: Kind; raised: Map<DiagnosisName, number[]> }[] = [];
  for (const kind of KINDS) {
    for (let seed = UNSEEN; seed < UNSEEN + count; seed++) {
      signal.throwIfAborted();
      healthy.push({ kind, raised: raisedIn(await simulatedStage(seed, { kind, steps: STEPS })) });
    }
  }
  for (const name of DIAGNOSES) {
    const hits = healthy.filter(({ raised }) => raised.has(name));
    const by = KINDS.map((kind) => [hits.filter((hit) => hit.kind === kind).length, kind] as const);
    const where = by.filter(([found]) => found > 0).map((one) => one.join(' '));
    yield row(`healthy: ${name}`, 'less', hits.length, healthy.length, where.join(', '));
  }

  for (const sickness of SICKNESSES) {
    for (const strength of STRENGTHS) {
      const name = EXPECTED[sickness];
      const delays: number[] = [];
      for (let seed = 0; seed < count; seed++) {
        signal.throwIfAborted();
        const kinds = befallen(sickness);
        const kind = kinds[seed % kinds.length]!;
        const stage = await simulatedStage(seed, { kind, steps: STEPS, ill: { sickness, strength } });
        const first = raisedIn(stage)
          .get(name)
          ?.find((step) => step > ONSET);
        if (first !== undefined) delays.push(first - ONSET);
      }
      const how = delays.length === 0 ? '' : `after ${median(delays)} steps in the median`;
      yield row(`${strength} ${sickness}: ${name}`, 'more', delays.length, count, how);
    }
  }
};
