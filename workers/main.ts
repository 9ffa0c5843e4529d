import { DefaultLogger, Runtime } from '@temporalio/worker';
import { messageOf } from '../core/errors.ts';
import { ROLES } from '../core/names.ts';
import type { Role } from '../core/names.ts';
import { createLearnerWorker } from './learner.ts';
import { loseWhatCannotBeLogged } from './lossy-log.ts';
import { createOrchestratorWorker } from './orchestrator.ts';
import { createRolloutWorker } from './rollout.ts';
import { openRuntime } from './runtime.ts';
import type { RoleWorker, WorkerRuntime } from './runtime.ts';
import { sdkMetrics } from './sdk-metrics.ts';
import { readSettings } from './settings.ts';
import { notifySupervisor, whenToStop } from './supervisor.ts';
import { createTierWorker, neededRoles } from './tier.ts';
import { createToolWorker } from './tool.ts';
import { createVerifierWorker } from './verifier.ts';

// One worker process: `tsx workers/main.ts ROLE…`. Without roles it serves every queue.

const create: Record<Role, (runtime: WorkerRuntime) => Promise<RoleWorker>> = {
  orchestrator: createOrchestratorWorker,
  rollout: createRolloutWorker,
  tool: createToolWorker,
  verifier: createVerifierWorker,
  learner: createLearnerWorker,
  simulation: createTierWorker('simulation'),
  'high-fidelity': createTierWorker('high-fidelity'),
};

async function main(): Promise<void> {
  loseWhatCannotBeLogged();
  const asked = process.argv.slice(2);
  const unknown = asked.filter((role) => !ROLES.includes(role as Role));
  if (unknown.length > 0) throw new Error(`no role "${unknown.join('", "')}"; roles: ${ROLES.join(', ')}`);
  const roles = asked.length === 0 ? ROLES : (asked as Role[]);
  Runtime.install({
    logger: new DefaultLogger('WARN'),
    telemetryOptions: { logging: { filter: 'error' }, ...sdkMetrics(process.env) },
  });
  const runtime = await openRuntime(readSettings(), { hosted: roles.some((role) => role !== 'learner') });
  const served = neededRoles(roles, runtime.environments.values());
  const workers = await Promise.all(served.map((role) => create[role](runtime)));
  const stop = (): void => {
    for (const worker of workers) worker.shutdown();
  };
  // The one who started this process is told when it is ready, and takes it along when it goes.
  whenToStop(stop);
  await runtime.watch.begin(notifySupervisor);
  notifySupervisor({ ready: served, descriptions: workers.map((worker) => worker.description) });
  try {
    await Promise.all(workers.map((worker) => worker.run()));
  } finally {
    await Promise.all(workers.map((worker) => worker.close()));
    await runtime.close();
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    const why = messageOf(error);
    console.error(`worker (${process.argv.slice(2).join(', ') || 'all'}): ${why}`);
    // The one who started this process tells the person why there is no worker, who need not look for it in a log.
    notifySupervisor({ failed: why }, () => process.exit(1));
  },
);
