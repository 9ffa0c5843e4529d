import type { Ask } from '../../core/ladder/requests.ts';
import { tierQueue } from '../../core/names.ts';
import { DEFAULT_TIER_LIMITS } from '../../environments/contract.ts';
import type { RungView } from './climbers.ts';

/** How long people are waited for where the verifier does not say. */
const PEOPLE_TAKE_SECONDS = 7 * 24 * 3600;

/** What must be asked for a verdict, and of whom. */
export function askOf({ verifier, subject, digest }: RungView, environment: string, reviewers: number): Ask {
  const { name, version, tier, cost, served, limits } = verifier;
  return {
    request: { format: 'gradus.verify/1', verifier: name, version, digest, subject },
    environment,
    cost,
    limits: {
      ...DEFAULT_TIER_LIMITS,
      ...(served.by === 'people' && { timeoutSeconds: PEOPLE_TAKE_SECONDS }),
      ...limits,
    },
    served:
      served.by === 'people'
        ? { by: 'people', reviewers }
        : { by: 'queue', queue: tierQueue(tier, served.by === 'pool' ? served.pool : undefined) },
  };
}
