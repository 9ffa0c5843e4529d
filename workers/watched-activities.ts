import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import type { LoopWatch } from './loop-watch.ts';

/** Tells the watch of this process's event loop which activities are under way. */
export const watchedActivities =
  (watch: LoopWatch): ActivityInterceptorsFactory =>
  ({ info: { activityType, workflowExecution, attempt, taskToken } }) => ({
    inbound: {
      async execute(input, next) {
        const where = workflowExecution?.workflowId ?? 'no workflow';
        const ended = watch.began({
          name: `${activityType} of ${where} (attempt ${attempt})`,
          token: taskToken,
        });
        try {
          return await next(input);
        } finally {
          ended();
        }
      },
    },
  });
