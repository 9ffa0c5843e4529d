import { fileURLToPath } from 'node:url';
import { NativeConnection, Worker } from '@temporalio/worker';
import { QUEUES } from '../../core/names.ts';
import type { Role } from '../../core/names.ts';
import type { InstallationOptions } from '../../cli/stack-with-workers.ts';
import { failureInterceptor } from '../../workers/failures.ts';
import { retryReports } from '../../workers/retry-reports.ts';
import { startTestInstallation } from './test-installation.ts';
import type { TestInstallation } from './test-installation.ts';

/** By worker. */
export type Activities = Partial<Record<Role, Record<string, (request: never) => unknown>>>;

/**
 * The real workflows on a real server, with activities that a test holds up, fails and counts as it likes: its own, or
 * real ones that it makes of the installation.
 */
export interface WorkflowLab extends TestInstallation {
  stop: () => Promise<void>;
}

export async function startWorkflowLab(
  given: Activities | ((installation: TestInstallation) => Activities | Promise<Activities>),
  options: InstallationOptions = {},
): Promise<WorkflowLab> {
  const installation = await startTestInstallation({ ...options, processes: [] });
  const activities = typeof given === 'function' ? await given(installation) : given;
  const { temporalAddress, namespace } = installation.settings;
  const connection = await NativeConnection.connect({ address: temporalAddress });
  const interceptors = { activity: [retryReports(connection, namespace), failureInterceptor] };
  const workers = [
    await Worker.create({
      connection,
      namespace,
      taskQueue: QUEUES.orchestrator,
      workflowsPath: fileURLToPath(new URL('./lab-workflows.ts', import.meta.url)),
      activities: activities.orchestrator ?? {},
      interceptors,
    }),
  ];
  for (const [role, served] of Object.entries(activities)) {
    if (role === 'orchestrator') continue;
    const taskQueue = QUEUES[role as Role];
    workers.push(await Worker.create({ connection, namespace, taskQueue, activities: served, interceptors }));
  }
  const running = Promise.all(workers.map((worker) => worker.run()));
  return {
    ...installation,
    stop: async () => {
      for (const worker of workers) worker.shutdown();
      await running;
      await connection.close();
      await installation.remove();
    },
  };
}

/** Something that a test waits for, and lets go. */
export class Gate {
  readonly opened: Promise<void>;
  isOpen = false;
  private release!: () => void;

  constructor() {
    this.opened = new Promise((resolve) => (this.release = resolve));
  }

  open(): void {
    this.isOpen = true;
    this.release();
  }
}
