import { Context } from '@temporalio/activity';
import { GradusError } from '../../core/errors.ts';
import type { TierAnswer, TierRequest } from '../../core/tier-contract.ts';
import type { HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import type { Environments } from '../../environments/host/environment-of.ts';

export interface TierActivities {
  verifySubject(request: TierRequest): Promise<TierAnswer>;
}

/**
 * Serves the verifiers of one tier that are functions in TypeScript, in processes of their own. Heartbeats are the
 * function's own.
 */
export function createTier({ environments }: { environments: Environments }): TierActivities {
  return {
    async verifySubject(request): Promise<TierAnswer> {
      const context = Context.current();
      const { verifier, version, digest, subject } = request;
      const environment = environmentWith(environments, request);
      const start = performance.now();
      const finding = await environment.find(verifier, subject, {
        signal: context.cancellationSignal,
        heartbeat: () => context.heartbeat(),
      });
      const { usd = 0, ...found } = finding;
      const seconds = (performance.now() - start) / 1000;
      return { format: 'gradus.verdict/1', verifier, version, digest, spent: { seconds, usd }, ...found };
    },
  };
}

function environmentWith(environments: Environments, { verifier, version }: TierRequest): HostedEnvironment {
  for (const environment of environments.values()) {
    const known = environment.verifiers.find(
      ({ name, served }) => name === verifier && served?.by === 'function',
    );
    if (known?.version === version) return environment;
  }
  throw new GradusError(
    'verifier',
    'unknown',
    `this worker has no function for ${verifier} ${version}: start it with GRADUS_ENVIRONMENTS set to the module that exports it`,
    { retryable: true },
  );
}
