import type { Episode, RolloutGroup } from '../../core/episode/episode.ts';
import { trainableReward } from '../../core/episode/outcome.ts';
import { chooseBranches, treeOf } from '../../core/episode/tree.ts';
import type { TreePath, TreePlace } from '../../core/episode/tree.ts';
import type { Growth } from '../../core/requests/rollout.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import type { InPieces } from '../../engine/in-pieces.ts';

/**
 * `samples` more episodes of each task, which begin with what others have had before them: where they branch off is a
 * function of the `trees` alone, in their order. Episodes without a trainable reward are not branched off. Yields after
 * each sample.
 */
export function* branchesOf(
  trees: readonly RolloutGroup[],
  samples: number,
  search: Pick<Growth, 'width' | 'exploration'>,
  { truncated }: Pick<RewardSpec, 'truncated'>,
): InPieces<Episode[]> {
  const [first] = trees;
  const all = trees.flatMap(({ episodes }) => episodes);
  const firstSample = firstSampleOf(trees);
  const branches: Episode[] = [];
  for (const task of first!.tasks.keys()) {
    const ofTask = all.filter((episode) => episode.task === task);
    const known = ofTask.flatMap((episode) => {
      const reward = trainableReward(episode.outcome!, truncated);
      return reward === null ? [] : [{ episode, reward }];
    });
    const root = treeOf(known.map(pathOf));
    const places = root ? yield* chooseBranches(root, samples, search) : Array<null>(samples).fill(null);
    const notPosed = first!.tasks[task]!.promptTokens.length === 0 ? ofTask[0]!.status : null;
    places.forEach((place, n) => {
      const begun = place ? upTo(known[place.sample]!.episode, place) : nothing();
      const status = notPosed ?? { kind: 'running' };
      branches.push({ task, sample: firstSample + n, ...begun, status });
    });
  }
  return branches;
}

/** The number of the first sample that is added to each task of the trees. */
export const firstSampleOf = (trees: readonly Pick<RolloutGroup, 'episodes'>[]): number =>
  1 + trees.flatMap(({ episodes }) => episodes).reduce((last, { sample }) => Math.max(last, sample), -1);

const pathOf = ({ episode, reward }: { episode: Episode; reward: number }): TreePath => ({
  tokens: episode.tokens,
  turns: episode.turns,
  inherited: episode.inherited?.turns ?? 0,
  reward,
});

type Begun = Omit<Episode, 'task' | 'sample' | 'status'>;

const nothing = (): Begun => ({ tokens: [], mask: [], samplerLogprobs: [], turns: [] });

function upTo({ sample, tokens, mask, samplerLogprobs, kept, turns }: Episode, { turn }: TreePlace): Begun {
  if (turn === 0) return nothing();
  const end = turns[turn]!.start;
  return {
    tokens: tokens.slice(0, end),
    mask: mask.slice(0, end),
    samplerLogprobs: samplerLogprobs.slice(0, end),
    ...(kept && { kept: kept.slice(0, end) }),
    turns: turns.slice(0, turn),
    inherited: { sample, turns: turn, tokens: end },
  };
}
