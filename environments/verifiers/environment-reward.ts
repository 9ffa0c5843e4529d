import type { FastVerifier } from '../contract/environment.ts';

/** In the evidence of a reward that was held, before what it may be. */
export const BEYOND = 'beyond what counts, from';

export interface EnvironmentRewardOptions {
  name?: string;
  /** What counts as 0 and as 1, in the environment's own units; beyond them it is held. */
  least?: number;
  most?: number;
  /** Which of the turns' rewards counts where the session had no last word about the whole episode. */
  of?: 'sum' | 'last';
  /** What an episode is worth that the environment gave nothing: 0 unless given, lest giving up early is a place to hide. */
  missing?: 'zero' | 'abstain';
}

/**
 * What an environment with sessions gave, as a score: the reward of the session's last word, else of the turns. 0 where it
 * gave none.
 */
export function environmentReward(options: EnvironmentRewardOptions = {}): FastVerifier {
  const { name = 'environment', least = 0, most = 1, of = 'sum', missing = 'zero' } = options;
  if (!(least < most)) throw new RangeError(`environmentReward: least ${least} must be below most ${most}`);
  return {
    name,
    version: `2 ${of} ${least} ${most} ${missing}`,
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    verify: ({ episode: { turns, session } }) => {
      const given = turns.flatMap(({ observation }) => observation?.reward ?? []);
      const whole = session?.ended?.reward ?? (of === 'sum' ? sum(given) : given.at(-1));
      if (whole === undefined) {
        const nothing = 'the environment gave no reward';
        return missing === 'abstain'
          ? { kind: 'abstain', reason: nothing }
          : { kind: 'score', score: 0, evidence: nothing };
      }
      const score = Math.min(1, Math.max(0, (whole - least) / (most - least)));
      const held = whole < least || whole > most ? `, ${BEYOND} ${least} to ${most}` : '';
      return { kind: 'score', score, evidence: `the environment gave ${whole}${held}` };
    },
  };
}

const sum = (values: readonly number[]): number | undefined =>
  values.length === 0 ? undefined : values.reduce((total, value) => total + value, 0);
