import type { FC } from 'hono/jsx';
import type { TruncatedRule } from '../../../core/episode/outcome.ts';
import type { EpisodeRow } from '../../../runs/episodes/episode-rows.ts';
import { histogram, shortNumber } from '../../../svg/charts.ts';
import { Figure } from '../../parts/chart.tsx';
import { amountText } from '../../parts/numbers.tsx';

export const Rewards: FC<{ rows: readonly EpisodeRow[]; truncated: TruncatedRule }> = ({
  rows,
  truncated,
}) => {
  const rewards = rows.flatMap(({ reward }) => (reward === null ? [] : [reward]));
  if (rewards.length === 0) return null;
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const [low, high] = rewards.reduce(
    ([least, most], reward) => [Math.min(least, reward), Math.max(most, reward)],
    [Infinity, -Infinity],
  );
  const cut = rows.filter(({ reward, outcome }) => reward !== null && outcome === 'truncated').length;
  const masked =
    truncated === 'mask' && cut > 0 ? `; ${cut} of them were cut off, and are not trained on` : '';
  const label = `Rewards of ${amountText(rewards.length, 'episode')}: from ${shortNumber(low)} to ${shortNumber(high)}, mean ${shortNumber(mean)}${masked}`;
  return (
    <div class="figures">
      <Figure heading="Rewards" svg={histogram({ label, values: rewards })}>
        <p class="note">{label}</p>
      </Figure>
    </div>
  );
};
