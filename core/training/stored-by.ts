import type { RewardStageSpec } from '../schema/stages/reward.ts';
import type { StageSpec } from '../schema/stages/stages.ts';

/** Which stored episodes a stage reads, if it does; without a run those of its own. */
export function storedBy(stage: StageSpec): RewardStageSpec['episodes'] | null {
  if (stage.kind === 'reward') return stage.episodes;
  return stage.kind === 'rl' && stage.collect.kind === 'stored' ? stage.collect : null;
}
