import type { Json } from '../../../core/json/json.ts';
import type { MadeTaskRef } from '../../../core/refs.ts';
import type { FastVerifier, Task } from '../../contract/environment.ts';
import { environmentReward } from '../../verifiers/environment-reward.ts';
import type { Visit } from './goals.ts';
import type { Goal } from './product.ts';
import { addressesOf, boughtAt } from './visit.ts';

/** A wish that takes the place of the task's own. */
export const infoOf = (goal: Goal): Json => JSON.parse(JSON.stringify({ goal })) as Json;

const goalIn = ({ info }: Task): Goal | undefined => (info as { goal: Goal } | undefined)?.goal;

/** What the shop gave. It gave that for the task's own wish: for another one, what was bought is looked at again. */
export function purchaseVerifier(visits: (ref: MadeTaskRef) => Visit): FastVerifier {
  const given = environmentReward();
  return {
    ...given,
    verify: (candidate, context) => {
      const { task, episode } = candidate;
      const goal = goalIn(task);
      if (goal === undefined) return given.verify(candidate, context);
      const { shop } = visits(task.ref);
      const bought = boughtAt({ shop, goal }, addressesOf(shop, episode).at(-1)!);
      const score = bought?.reward ?? 0;
      return { kind: 'score', score, evidence: `what was bought is worth ${score}` };
    },
  };
}
