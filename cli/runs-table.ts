import type { RunRow } from '../runs/overview/runs.ts';
import { howLong } from '../core/time/how-long.ts';
import { printable } from '../core/printable.ts';
import { shortened } from './shortened.ts';
import { percent } from '../core/percent.ts';
import { textTable } from '../runs/text-table.ts';

/** Characters of a question and of a name; whole ones are in `--json`. */
const QUESTION = 60;
const NAME = 48;

/** One line a run, with a dash for what is not known. */
export function runsTable(rows: readonly RunRow[], now: number): string {
  return textTable(
    ['run', 'status', 'stage', 'step', 'held-out', 'age', 'spent', 'waits for'],
    rows.map((row) => cells(row, now).map(printable)),
    { compact: true, optional: ['spent', 'age', 'stage'] },
  );
}

function cells(row: RunRow, now: number): string[] {
  const { run, workflowId, status, stage, heldOut, startedAt, endedAt, spend, question, from } = row;
  const since = startedAt ?? endedAt;
  const why = row.concerns.map((one) => (one.kind === 'alarm' ? one.name : 'low success'));
  return [
    nameOf(run, workflowId),
    // What the run itself did not say just now may have changed.
    [from === 'visibility' && endedAt === null ? `${status} ?` : status, ...why].join(', '),
    stage === null ? '–' : shortened(stage, NAME),
    stepOf(row),
    heldOut === null ? '–' : `${percent(heldOut.success)} [${bound(heldOut.low)}, ${bound(heldOut.high)}]`,
    since === null ? '–' : howLong(now - since),
    spend === null ? '–' : `${spend.seconds.toFixed(0)} s, US$ ${spend.usd.toFixed(2)}`,
    question === null ? (status === 'waiting' ? 'a person' : '') : shortened(question.reason, QUESTION),
  ];
}

/** The name in the store, and the workflow's where that is another one. */
function nameOf(run: string | null, workflowId: string | null): string {
  if (run === null) return `(${shortened(workflowId ?? '', NAME)})`;
  return workflowId === null || workflowId === run
    ? shortened(run, NAME)
    : `${shortened(run, NAME)} (${shortened(workflowId, NAME)})`;
}

/** Of an interval, in percent, as pages have it. */
const bound = (x: number): string => (100 * x).toFixed(1);

function stepOf({ step, stageStep, maxSteps }: RunRow): string {
  if (stageStep !== null) return `${stageStep}/${maxSteps}`;
  return step === null ? '–' : String(step);
}
