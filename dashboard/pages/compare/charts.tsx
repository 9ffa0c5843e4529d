import type { FC } from 'hono/jsx';
import { commandLine } from '../../../core/installation.ts';
import type { Along, Comparison } from '../../../runs/comparison/compare.ts';
import { shortNumber } from '../../../svg/charts.ts';
import { Curves } from '../../parts/chart.tsx';
import { NAMES } from './asking.ts';
import type { Asking } from './asking.ts';

/** Figures that are shown at once, by what they answer; the rest are there when all are asked for. */
const CURATED: [name: string, heading: string][] = [
  ['success/held-out', 'Held-out success'],
  ['success/train', 'Success in training'],
  ['reward/mean', 'Reward'],
  ['reward/equal-groups', 'Groups without advantages'],
  ['policy/entropy', 'Entropy, nats a token'],
  ['learner/kl', 'KL, nats'],
  ['learner/gradient-norm', 'Gradient norm'],
  ['episodes/tokens', 'Length, tokens of an episode'],
  ['episodes/turns', 'Turns of an episode'],
  ['episodes/truncated', 'Truncated'],
  ['outcomes/failed', 'Failed'],
];
const UNITS: Record<Along, string> = { step: 'step', tokens: 'token', time: 'second' };

const SHARES = /^(success|outcomes|failures)\/|truncated|equal-groups|-share$/;

export const ComparisonCharts: FC<{ compared: Comparison; figures: Asking['figures'] }> = ({
  compared,
  figures,
}) => {
  const { along } = compared;
  const rest = [...compared.figures.keys()].filter((name) => !CURATED.some(([one]) => one === name));
  const chosen = [
    ...CURATED,
    ...(figures === 'all' ? rest.toSorted().map((name) => [name, name] as const) : []),
  ];
  return (
    <>
      <h2>Curves</h2>
      <p class="note">
        By the {NAMES[along]}
        {along === 'time' && ', without what passed between them'}
        {along === 'tokens' && ', baselines and corrections included, evaluations not'}; each figure is that
        of a step, as <code>{commandLine('metrics RUN')}</code> has it.
      </p>
      <div class="figures">
        {chosen.flatMap(([name, heading]) => {
          const curves = compared.figures.get(name);
          if (!curves) return [];
          // Not every step is measured on held-out tasks: the line goes from measurement to measurement.
          const sparse = name.includes('held-out');
          const series = curves.map(({ run, points }) => ({
            name: run,
            points: sparse ? points.filter(([, y]) => y !== null) : points,
          }));
          const share = SHARES.test(name)
            ? { format: (y: number) => `${shortNumber(100 * y)} %`, low: 0 }
            : {};
          return [<Curves heading={heading} chart={{ series, unit: UNITS[along], ...share }} />];
        })}
      </div>
    </>
  );
};
