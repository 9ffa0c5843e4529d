import { Context } from '@temporalio/activity';
import { GradusError } from '../core/errors.ts';
import type { TierAnswer, TierRequest } from '../core/tier-contract.ts';
import type { TierFinding, TierVerifier } from '../environments/contract.ts';
import type { Environments } from './environment-of.ts';

export interface TierActivities {
  verifySubject(request: TierRequest): Promise<TierAnswer>;
}

/** Serves the verifiers of one tier that are functions in TypeScript. Heartbeats are the function's own. */
export function createTier({ environments }: { environments: Environments }): TierActivities {
  return {
    async verifySubject(request): Promise<TierAnswer> {
      const context = Context.current();
      const served = functionOf(environments, request);
      const start = performance.now();
      const signal = context.cancellationSignal;
      const finding: TierFinding = await new Promise((resolve, reject) => {
        // One that is deaf to the signal must not keep the slot.
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
        Promise.resolve()
          .then(() => served.verify(request.subject, { signal, heartbeat: () => context.heartbeat() }))
          .then(resolve, reject);
      });
      const { usd = 0, ...found } = finding;
      const { verifier, version, digest } = request;
      const seconds = (performance.now() - start) / 1000;
      return { format: 'gradus.verdict/1', verifier, version, digest, spent: { seconds, usd }, ...found };
    },
  };
}

type Served = Extract<TierVerifier['served'], { by: 'function' }>;

function functionOf(environments: Environments, { verifier, version }: TierRequest): Served {
  for (const environment of environments.values()) {
    for (const known of environment.verifiers) {
      if (known.tier === 'fast' || known.served.by !== 'function') continue;
      if (known.name === verifier && known.version === version) return known.served;
    }
  }
  throw new GradusError(
    'verifier',
    'unknown',
    `this worker has no function for ${verifier} ${version}: start it with GRADUS_ENVIRONMENTS set to the module that exports it`,
    { retryable: true },
  );
}
