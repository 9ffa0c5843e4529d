import { LADDER } from '../../../core/ladder/requests.ts';

interface Written {
  verification?: { rungs?: { verifier: string }[] };
  reward?: { components?: { verifier: string }[] };
  stages?: { budgets?: unknown }[];
}

/**
 * A spec with the lowest tier of its ladder alone, for a machine without the higher tiers: the tier's verifier takes
 * the ladder's place in the reward. What is wrong with the spec stays wrong, for the parser to say.
 */
export function fastTierOnly(spec: unknown): unknown {
  const { verification, ...rest } = spec as Written;
  const lowest = verification?.rungs?.[0]?.verifier;
  if (lowest === undefined) return spec;
  return {
    ...rest,
    reward: {
      ...rest.reward,
      components: rest.reward?.components?.map((component) =>
        component.verifier === LADDER ? { ...component, verifier: lowest } : component,
      ),
    },
    stages: rest.stages?.map((stage) => {
      // Budgets are of tiers that are not there.
      const { budgets: _, ...others } = stage;
      return others;
    }),
  };
}
