import { decimals } from '../../core/decimals.ts';
import { heededText } from '../../core/diagnosis/act.ts';
import { figuresOf } from '../../core/training/figures.ts';
import type { StoredStep } from '../../store/training/step-facts.ts';
import { textTable } from '../../runs/text-table.ts';

const percent = (share: number): string => (100 * share).toFixed(1);
const fixed =
  (digits: number) =>
  (value: number): string =>
    decimals(value, digits);

/** What a wide terminal has room for; all figures are in `--json` and in the exports. */
const COLUMNS: readonly [head: string, name: string, text: (value: number) => string][] = [
  ['reward', 'reward/mean', fixed(3)],
  ['± in group', 'reward/deviation-in-groups', fixed(3)],
  ['σ = 0 %', 'reward/equal-groups', percent],
  ['train %', 'success/train', percent],
  ['held-out %', 'success/held-out', percent],
  ['entropy', 'policy/entropy', fixed(3)],
  ['KL', 'learner/kl', fixed(4)],
  ['clipped %', 'learner/clip-fraction', percent],
  ['|gradient|', 'learner/gradient-norm', fixed(3)],
  ['gap', 'learner/logprob-gap-max', (value) => value.toExponential(0)],
  ['tokens', 'episodes/tokens', fixed(1)],
  ['turns', 'episodes/turns', fixed(1)],
  ['cut off %', 'episodes/truncated', percent],
];

/** Of samples with hints, and of stages that sample ahead; left out where no step has any. */
const OF_SOME: typeof COLUMNS = [
  ['with hint %', 'success/hinted', percent],
  ['stale', 'staleness/mean', fixed(1)],
  ['idle s', 'idle/learner', fixed(1)],
];

/** Where the terminal is narrow. */
const FIRST_LEFT_OUT = [
  'turns',
  'gap',
  'idle s',
  '|gradient|',
  '± in group',
  'clipped %',
  'cut off %',
  'tokens',
  'with hint %',
  'stale',
  'KL',
  'stage',
];

/** One line a step, with a dash for what was not measured, and below it what was decided, asked and answered. */
export function metricsTable(steps: readonly StoredStep[], width?: number | null): string {
  const known = steps.map((step) => figuresOf(step));
  const columns = [...COLUMNS, ...OF_SOME.filter(([, name]) => known.some((figures) => name in figures))];
  const rows = steps.map((step, i) => {
    const figures = known[i]!;
    const cells = columns.map(([, name, text]) => {
      const value = figures[name];
      return value === undefined ? '–' : text(value);
    });
    return [step.step, step.stage, ...cells];
  });
  const table = textTable(['step', 'stage', ...columns.map(([head]) => head)], rows, {
    compact: true,
    align: ['right', 'left', ...columns.map(() => 'right' as const)],
    optional: FIRST_LEFT_OUT,
    ...(width !== undefined && { width }),
  });
  return [table, ...steps.flatMap(happenings)].join('\n');
}

/** What there is to say of a step in words. */
function happenings({ step, stage, alarms, decision, answer, circumstances }: StoredStep): string[] {
  const at = `step ${step} (${stage})`;
  const { kind, reason, action } = decision;
  const asked = answer === null ? 'not answered yet' : `answered: ${answer}`;
  const done = action === 'ask' ? `; a person was asked, ${asked}` : '';
  return [
    ...alarms.map((alarm) => `${at}: ${heededText(alarm)}`),
    ...(kind === 'continue' ? [] : [`${at}: ${kind}: ${reason ?? ''}${done}`]),
    ...circumstances.incidents.map(
      (incident) => `${at}: ${incident.count} × ${incident.function} ${incident.kind}: ${incident.message}`,
    ),
  ];
}
