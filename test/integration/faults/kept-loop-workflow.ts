import { proxyActivities } from '@temporalio/workflow';
import { RETRY } from '../../../workflows/activities.ts';

interface KeepRequest {
  seconds: number;
}

const activities = proxyActivities<{ keepLoop: (request: KeepRequest) => Promise<number> }>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '6 seconds',
  retry: RETRY,
});

/** The attempt that came to the end. */
export function keepsLoop(request: KeepRequest): Promise<number> {
  return activities.keepLoop(request);
}
