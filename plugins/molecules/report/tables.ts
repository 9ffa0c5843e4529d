import { rate } from '../../../core/statistics/intervals.ts';
import type { Interval } from '../../../core/statistics/intervals.ts';
import type { Target } from '../../../environments/families/molecules/targets.ts';
import type { Properties } from '../../../environments/families/molecules/verifiers.ts';
import { percent } from '../../../core/percent.ts';
import { calibrationInWords, countText, dollars, duration, toolName } from './names.ts';
import type { Quality } from './quality.ts';
import type { MoleculesReport } from './report.ts';
import { textTable } from '../../../runs/text-table.ts';

const tableOf = (head: string[], rows: string[][]): string => textTable(head, rows);

/** The report for a terminal. */
export function showReport({ funnel, calibration, best, quality }: MoleculesReport): string {
  const judge = quality.judge === null ? '' : toolName(quality.judge);
  const parts = [
    tableOf(
      [
        'tier',
        'candidates',
        'different',
        'passed',
        'abstained',
        'deferred',
        'unanswered',
        'calculated',
        'time',
        'US$',
      ],
      funnel.map((tier) => [
        `${tier.tier}: ${toolName(tier.verifier)}`,
        ...[tier.candidates, tier.different, tier.passed, tier.abstained, tier.deferred, tier.waiting].map(
          countText,
        ),
        tier.computed === null ? '–' : countText(tier.computed),
        tier.seconds === null ? '–' : duration(tier.seconds),
        tier.usd === null ? '–' : dollars(tier.usd),
      ]),
    ),
    ...calibration.map(
      (one) => `${toolName(one.from)} → ${toolName(one.to)}: ${calibrationInWords(one).join(', ')}`,
    ),
  ];
  if (best.length > 0) {
    const tiers = [...new Set(best.flatMap((molecule) => Object.keys(molecule.tiers)))];
    const rows = best.map((molecule) => [
      molecule.smiles,
      molecule.score.toFixed(3),
      wanted(molecule.target),
      ...tiers.map((tier) => inWords(molecule.tiers[tier]?.properties)),
    ]);
    parts.push(tableOf(['best molecules', `${judge} score`, 'wanted', ...tiers.map(toolName)], rows));
  }
  parts.push(tableOf(['', 'before RL', 'after'], qualityRows(quality.before, quality.after, judge)));
  if (quality.gain) {
    const { mean, n, ...bounds } = quality.gain;
    parts.push(`gain in ${judge} score, task by task: ${fixed(mean)} [${spread(bounds)}] over ${n} tasks`);
  }
  return parts.join('\n');
}

const wanted = ({ gap, dipole }: Target): string =>
  [`${gap.join('–')} eV`, ...(dipole === null ? [] : [`${dipole.join('–')} D`])].join(', ');

function inWords(properties: Properties | undefined): string {
  if (properties === undefined) return '–';
  const { gap, dipole } = properties;
  return `${gap.value.toFixed(2)} eV, ${dipole.value.toFixed(2)} D`;
}

function qualityRows(before: Quality, after: Quality, judge: string): string[][] {
  const share = (of: Quality['good']) =>
    of === null
      ? '–'
      : `${percent(rate(of))}  [${percent(of.low)} – ${percent(of.high)}]  ${of.successes} of ${of.trials}`;
  const rows = [['valid', share(before.valid), share(after.valid)]];
  if (judge === '') return rows;
  const mean = ({ score }: Quality) =>
    score === null ? '–' : `${fixed(score.mean)}  [${spread(score)}]  of ${score.n}`;
  return [
    ...rows,
    [`mean ${judge} score`, mean(before), mean(after)],
    [`${judge} score ≥ 0.9`, share(before.good), share(after.good)],
  ];
}

const fixed = (value: number): string => value.toFixed(3);
const spread = ({ low, high }: Interval): string => `${fixed(low)} – ${fixed(high)}`;
