import { z } from 'zod';
import { statesOf, treeOf } from '../episode/tree.ts';
import type { TreeAction, TreeState } from '../episode/tree.ts';
import { amount, count, fraction, positive } from '../fields.ts';
import type { TaskGroup } from './task-group.ts';
import type { SampleAdvantages } from './advantage.ts';
import type { Method } from './method.ts';
import { pairsInwards } from './pairs.ts';
import { rewardedOf } from './sampled.ts';
import { ofSamples, passes, planOf } from './surrogate.ts';

/**
 * Agent Q (Putta et al. 2024, arXiv 2408.07199): a tree is searched for turns that turn out better than others from the
 * same state, and DPO learns to prefer them.
 *
 *   Q(s, a) = α · mean reward of the samples that went through a + (1 − α) · the turn's own reward
 *   loss: −log σ(β (log π/π_ref of the better turn − log π/π_ref of the worse one)), over the tokens of these turns alone
 *
 * The better with the worse of the actions of one state, where their Q differ by more than `margin`; of a task those
 * that differ most. The search is the stage's `collect`.
 */
const schema = z.strictObject({
  kind: z
    .literal('agentq')
    .describe('DPO on pairs of actions from the same state of a tree (Putta et al. 2024).'),
  beta: positive(100, 'the reference would hold it')
    .default(0.1)
    .describe('How strongly the reference holds.'),
  alpha: fraction
    .default(1)
    .describe('Weight of the rewards of samples; the rest is that of the turn’s own reward.'),
  margin: amount(100, 'no pair would be left')
    .default(0.5)
    .describe('Two actions make a pair where their values differ by more, in units of reward.'),
  pairsPerTask: count(2048, 'a task has no more pairs')
    .default(8)
    .describe('The most pairs of a task that are trained on.'),
  ...passes,
});

export const agentq: Method<typeof schema> = {
  schema,
  perGroup: false,
  readsTurns: true,
  offPolicy: true,
  plan: (spec, sampling) => {
    const { temperature, topK } = ofSamples(sampling);
    const { beta } = spec;
    return planOf(spec, { kind: 'dpo', temperature, topK, variant: 'sigmoid', beta, labelSmoothing: 0 });
  },
  advantages: (groups, spec) => {
    let pair = 0;
    return groups.flatMap((group, g) =>
      pairsOf(group, spec).flatMap(({ better, worse }): SampleAdvantages[] => {
        const half = ({ own: { sample, turn } }: Drawn, label: 1 | -1): SampleAdvantages => {
          const { start, end } = group.samples[sample]!.turns[turn]!;
          const mask = group.samples[sample]!.mask.map((bit, at) => (at >= start && at < end ? bit : 0));
          return { group: g, sample, advantages: mask.map((bit) => bit * label), mask, pair, label };
        };
        const both = [half(better, 1), half(worse, -1)];
        pair++;
        return both;
      }),
    );
  },
  refuse: ({ alpha }, { tree, stored, turnRewards }) => {
    if (!tree && !stored)
      return [
        {
          field: 'kind',
          message:
            'agentq prefers turns to others from the same state: let the stage search for them, with collect { "kind": "tree" }, or take the stored episodes of one that has',
        },
      ];
    if (alpha < 1 && !turnRewards)
      return [
        {
          field: 'alpha',
          message:
            'no rule of the reward pays single turns: leave it at 1, or give one { "kind": "process", "by": "turns" }',
        },
      ];
    return [];
  },
};

/** A turn that a sample drew itself, by its place among those. */
interface OwnTurn {
  sample: number;
  turn: number;
}

/** An action by the turn that drew it first. */
interface Drawn {
  own: OwnTurn;
  worth: number;
  /** Tokens of the turn before those that were sampled. */
  begun: string;
}

interface Pair {
  better: Drawn;
  worse: Drawn;
  gap: number;
}

function pairsOf(
  group: TaskGroup,
  { alpha, margin, pairsPerTask }: { alpha: number; margin: number; pairsPerTask: number },
): Pair[] {
  const known = rewardedOf(group);
  const root = treeOf(
    known.map(({ of: { tokens, before, turns, reward } }) => ({
      tokens,
      turns: [...before, ...turns],
      inherited: before.length,
      reward,
    })),
  );
  if (!root) return [];
  const drawn = ({ drawnAt, value }: TreeAction): Drawn[] => {
    if (!drawnAt) return [];
    const { sample, of } = known[drawnAt.sample]!;
    const { tokens, before, turns } = of;
    const turn = drawnAt.turn - before.length;
    const { start, reward } = turns[turn]!;
    const worth = alpha * value + (1 - alpha) * reward;
    return [
      { own: { sample, turn }, worth, begun: drawnAt.turn === 0 ? tokens.slice(0, start).join(' ') : '' },
    ];
  };
  /** Of those alike in what nobody sampled of them: a drawn tool makes another state of the prompt. */
  const pairsAt = ({ actions }: TreeState): Pair[] => {
    const all = actions.flatMap(drawn);
    return [...new Set(all.map(({ begun }) => begun))].flatMap((begun) =>
      pairsInwards(
        all.filter((one) => one.begun === begun),
        margin,
      ),
    );
  };
  return statesOf(root)
    .flatMap(pairsAt)
    .toSorted((a, b) => b.gap - a.gap)
    .slice(0, pairsPerTask);
}
