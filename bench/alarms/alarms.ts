import { DIAGNOSES } from '../../core/diagnosis/alarm.ts';
import type { DiagnosisName } from '../../core/diagnosis/alarm.ts';
import { diagnose, undiagnosed } from '../../core/diagnosis/diagnose.ts';
import type { Setting } from '../../core/diagnosis/diagnosis.ts';
import { wilson } from '../../core/statistics/intervals.ts';
import type { BenchOptions } from '../bench.ts';
import { benchRow } from '../bench-row.ts';
import type { BenchRow } from '../bench-row.ts';
import { ONSET, SICKNESSES, stageOf } from './simulated-policy.ts';
import type { Sickness, Told } from './simulated-policy.ts';

const STEPS = 100;
const STAGES = 100;
const QUICK_STAGES = 4;

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
const EXPECTED: Record<Exclude<Sickness, 'none'>, DiagnosisName> = {
  length: 'length-explosion',
  ghosts: 'tool-hallucination',
  errors: 'tool-errors',
  'cut-off': 'truncation',
  loops: 'loops',
  blind: 'no-contrast',
};

/** Where each alarm was raised first, from a step on. */
export function raisedIn(stage: readonly Told[], from = 1): Set<DiagnosisName> {
  let diagnosed = undiagnosed();
  const names = new Set<DiagnosisName>();
  for (const facts of stage) {
    const result = diagnose(diagnosed, facts, SETTING);
    diagnosed = result.diagnosed;
    for (const { name, stageStep } of result.alarms) if (stageStep >= from) names.add(name);
  }
  return names;
}

/**
 * How often alarms are raised in stages of simulated policies, in percent of the stages, with 95 % intervals (Wilson) on
 * the progress lines: each alarm where nothing goes wrong, and each one that is meant where something does.
 */
export async function* alarmsBench({ runs, quick, signal, say }: BenchOptions): AsyncGenerator<BenchRow> {
  const count = runs ?? (quick ? QUICK_STAGES : STAGES);
  for (const sickness of SICKNESSES) {
    const raised: Set<DiagnosisName>[] = [];
    for (let seed = 0; seed < count; seed++) {
      signal.throwIfAborted();
      raised.push(raisedIn(await stageOf(seed, STEPS, sickness), sickness === 'none' ? 1 : ONSET + 1));
    }
    for (const name of sickness === 'none' ? DIAGNOSES : [EXPECTED[sickness]]) {
      const hits = raised.filter((names) => names.has(name)).length;
      const { low, high } = wilson({ successes: hits, trials: count }, 0.95);
      const what = sickness === 'none' ? `healthy: ${name}` : `${sickness}: ${name}`;
      say(`  ${what}: ${hits} of ${count} stages [${(100 * low).toFixed(1)}, ${(100 * high).toFixed(1)}] %`);
      yield benchRow({
        bench: 'alarms',
        case: what,
        unit: '% of stages',
        better: sickness === 'none' ? 'less' : 'more',
        ours: [(100 * hits) / count],
        anchor: null,
      });
    }
  }
}
