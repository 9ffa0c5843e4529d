import { proxyActivities } from '@temporalio/workflow';
import type { TierAnswer, TierRequest } from '../../../core/tier-contract.ts';

export interface Ask {
  queue: string;
  request: TierRequest;
  timeoutSeconds: number;
  heartbeatSeconds: number;
}

/** Asks a tier as the ladder does, and gives back what its worker answers. */
export async function askTier({
  queue,
  request,
  timeoutSeconds,
  heartbeatSeconds,
}: Ask): Promise<TierAnswer> {
  const { verifySubject } = proxyActivities<{ verifySubject(request: TierRequest): Promise<TierAnswer> }>({
    taskQueue: queue,
    startToCloseTimeout: timeoutSeconds * 1000,
    heartbeatTimeout: heartbeatSeconds * 1000,
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    retry: { initialInterval: 200, maximumInterval: 1000, maximumAttempts: 5 },
  });
  return verifySubject(request);
}
