import { GradusError } from '../../core/errors.ts';
import type { HostedEnvironment } from './hosted-environment.ts';

export type Environments = ReadonlyMap<string, HostedEnvironment>;

/** Throws GradusError('environment', 'unknown'), retryable: another worker may have been given it. */
export function environmentOf(environments: Environments, name: string): HostedEnvironment {
  const environment = environments.get(name);
  if (environment) return environment;
  throw new GradusError(
    'environment',
    'unknown',
    `this worker has no environment "${name}" (it has ${[...environments.keys()].join(', ')}): start it with GRADUS_ENVIRONMENTS set to the module that exports it`,
    { retryable: true },
  );
}
