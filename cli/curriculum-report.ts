import path from 'node:path';
import type { CurriculumResult } from '../core/training/curriculum.ts';
import { heededText } from '../core/diagnosis/act.ts';
import { armName } from '../core/names.ts';
import { countsOf, noOutcomes } from '../core/episode/outcome.ts';
import type { EvaluationResult } from '../core/requests/evaluation.ts';
import { toolFailuresOf, total } from '../core/training/stage-policy.ts';
import { totalTime } from '../core/time/time-split.ts';
import type { Progress } from '../workflows/control/messages.ts';
import { trainedShare } from '../core/training/figures.ts';
import { samplesIn } from '../core/training/dimensions.ts';
import { howOf, howTable } from './how-solved.ts';
import { measuredShare } from '../core/statistics/measured.ts';
import { percent } from '../core/percent.ts';
import { interval, MOSTLY } from './show-progress.ts';
import { textTable } from '../runs/text-table.ts';

const DEFAULT_CONFIDENCE = 0.95;

/** Of the report's intervals. */
export const confidenceOf = (spec: unknown): number =>
  (spec as { evaluation?: { confidence?: number } }).evaluation?.confidence ?? DEFAULT_CONFIDENCE;

/** Success before RL, where there is any, and after all stages as a table, and what the run took, over all of its starts, and left. */
export function reportRun(
  result: CurriculumResult,
  progress: Progress,
  confidence: number,
  sinceStart: number,
  say: (text: string) => void,
): void {
  const { before, after, checkpoint } = result;
  if (after) {
    const rows = (before ?? after).arms.map((tally) => {
      const of = (evaluation: EvaluationResult | null): EvaluationResult['arms'] =>
        evaluation?.arms.filter(({ arm }) => armName(arm) === armName(tally.arm)) ?? [];
      return [armName(tally.arm), cell(before, of(before)), cell(after, of(after)), tally.trials];
    });
    const trials = total((before ?? after).arms).trials;
    rows.push(['all', cell(before, before?.arms ?? []), cell(after, after.arms), trials]);
    say(`\n\n${textTable(['', 'before RL', 'after', 'trials'], rows)}`);
    const how = howTable(before, after, confidence);
    if (how !== null) say(how);
    for (const [name, evaluation] of [['before', before] as const, ['after', after] as const]) {
      const unjudged = evaluation && unjudgedOf(evaluation);
      if (unjudged !== null) say(`${name}: ${unjudged}`);
    }
  }
  for (const { name, end, reason } of result.stages) {
    if (end === 'no-success') say(`stage ${name} had no success: ${reason}`);
    else if (end === 'exhausted' || end === 'plateau') say(`stage ${name} did not graduate: ${reason}`);
  }
  const equal = progress.step?.equalGroups ?? 0;
  if (equal >= MOSTLY)
    say(
      `in the last step ${percent(equal)} of the groups had equal rewards (σ = 0): a method that compares the samples of a task learns nothing from them`,
    );
  for (const [stage, tokens] of Object.entries(progress.tokens ?? {}))
    say(
      `stage ${stage} sampled ${tokens.sampled} tokens; ${percent(trainedShare(tokens) ?? 0)} of them are trained tokens`,
    );
  for (const { stage, ...alarm } of progress.alarms ?? []) {
    say(`step ${alarm.stageStep} of ${stage}: ${heededText(alarm)}`);
  }
  const parts = Object.entries(progress.seconds).filter(([, value]) => value >= 0.05);
  say(
    `steps ${result.steps}, ${totalTime(progress.seconds).toFixed(0)} s (${parts.map(([part, value]) => `${part} ${value.toFixed(1)} s`).join(', ')}); ${sinceStart.toFixed(0)} s since this start`,
  );
  say(`learner ${progress.learnerBackend ?? '–'}`);
  say(`checkpoint s3://gradus/${path.posix.dirname(checkpoint.manifest.key)}`);
  say(`weights SHA-256 ${checkpoint.weights}`);

  function cell(evaluation: EvaluationResult | null, arms: EvaluationResult['arms']): string {
    if (evaluation === null || arms.length === 0) return '–';
    const { success, ...bounds } = measuredShare(total(arms), confidence, samplesIn(evaluation));
    return `${percent(success)}  [${interval(bounds)}]`;
  }
}

/** How many episodes were not judged, and which of them count all the same; null where all were judged. */
export function unjudgedOf({ arms, outcomes }: Measurement): string | null {
  const { pending, abstained, failed } = outcomes;
  if (pending + abstained + failed === 0) return null;
  const atTools = toolFailuresOf(arms);
  const counted = atTools === 0 ? '' : `; ${atTools} failed at a tool, which is no success`;
  return `${countsOf({ ...noOutcomes(), pending, abstained, failed })}${counted}`;
}

/** What was measured, as an object for `--json`. */
export const summarizeEvaluation = (evaluation: Measurement, confidence: number) => ({
  ...measuredShare(total(evaluation.arms), confidence, samplesIn(evaluation)),
  ...(evaluation.conduct && { how: howOf(evaluation.conduct, confidence) }),
  outcomes: evaluation.outcomes,
  toolFailures: toolFailuresOf(evaluation.arms),
  arms: Object.fromEntries(
    evaluation.arms.map((tally) => [
      armName(tally.arm),
      { ...measuredShare(tally, confidence, samplesIn(evaluation)), ...tally },
    ]),
  ),
});
type Measurement = Pick<EvaluationResult, 'arms' | 'outcomes' | 'conduct'>;

/** The same as one object, for `--json`. */
export function summarizeRun(
  result: CurriculumResult,
  progress: Progress,
  confidence: number,
  sinceStart: number,
) {
  const of = (evaluation: EvaluationResult | null) =>
    evaluation && summarizeEvaluation(evaluation, confidence);
  return {
    run: progress.run,
    end: result.end,
    confidence,
    before: of(result.before),
    after: of(result.after),
    steps: result.steps,
    alarms: progress.alarms ?? [],
    /** Alarms that stand at the end, and the part of the last step's groups that had equal rewards. */
    standing: progress.step?.standing ?? [],
    equalGroups: progress.step?.equalGroups ?? null,
    /** By stage: what it sampled to learn from, and what of it something was learnt from. */
    tokens: progress.tokens ?? {},
    /** Of the whole run, by part; a run that was interrupted has had several starts. */
    seconds: { total: totalTime(progress.seconds), ...progress.seconds },
    sinceStart,
    learner: progress.learnerBackend,
    checkpoint: { key: result.checkpoint.manifest.key, sha256: result.checkpoint.weights },
  };
}
