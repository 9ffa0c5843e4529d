import { proxyActivities } from '@temporalio/workflow';
import { HEARTBEAT, RETRY } from '../../../workflows/activities.ts';

interface KeepRequest {
  seconds: number;
  /** Seconds of waiting before. */
  waits?: number;
  /** Seconds; as all activities have it unless given. */
  heartbeat?: number;
}

/** The attempt that came to the end. */
export function keepsLoop(request: KeepRequest): Promise<number> {
  const { heartbeat } = request;
  const activities = proxyActivities<{ keepLoop: (request: KeepRequest) => Promise<number> }>({
    startToCloseTimeout: '5 minutes',
    heartbeatTimeout: heartbeat === undefined ? HEARTBEAT : heartbeat * 1000,
    retry: RETRY,
  });
  return activities.keepLoop(request);
}
