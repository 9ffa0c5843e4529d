import { fork } from 'node:child_process';
import { commandLine } from '../core/installation.ts';
import type { Role } from '../core/names.ts';
import { OWN_LOADER, ownModule } from '../engine/own-module.ts';
import { lostAttemptsReporter } from './fail-lost-attempts.ts';
import { inheritedEnvironment } from './inherited-environment.ts';
import type { LoopBlock } from './loop-meter.ts';
import type { WorkerMessage } from './loop-watch.ts';
import { WORKER_METRICS } from './sdk-metrics.ts';
import { settingsToEnv } from './settings.ts';
import type { WorkerSettings } from './settings.ts';
import { SupervisedProcess } from './supervised-process.ts';
import type { ProcessKind, SupervisionOptions } from './supervised-process.ts';
import type { TierPlugin } from './tier-plugin.ts';

/** Which roles share a process: the decoder and the learner keep to themselves. */
export const PROCESSES: Role[][] = [
  ['orchestrator', 'verifier', 'tool', 'simulation', 'high-fidelity'],
  ['rollout'],
  ['learner'],
];

export interface WorkersOptions extends SupervisionOptions {
  processes?: Role[][];
  env?: Record<string, string>;
  /** What serves the learner's queue in place of the learner of this program: it keeps to docs/learner-contract.md. */
  learner?: ProcessKind;
  /** Tiers of other kinds that are served, too, where they are set up. */
  plugins?: readonly TierPlugin[];
  /** Where each process shows what Temporal's SDK measures in it: by its first role, HOST:PORT. */
  metrics?: Partial<Record<Role, string>>;
}

export interface Workers {
  /** What each worker said of itself when it was ready. */
  descriptions: string[];
  /** The longest time that the event loop of a role's processes was kept, as far as has been heard. */
  longestBlock(role: Role): LoopBlock;
  /** The process that serves a role, while there is one. */
  pid(role: Role): number | undefined;
  /** Resolves when every role is served again. */
  ready(): Promise<void>;
  stop(): Promise<void>;
}

const MAIN = ownModule('main', import.meta.url);

/**
 * All workers of a small installation, a process per group of roles. A process that dies is started again, after a
 * pause that grows while it keeps dying. They end with this process, whichever way it ends.
 * Throws GradusError('infra', 'worker-start') when one does not come up the first time.
 */
export async function startWorkers(settings: WorkerSettings, options: WorkersOptions = {}): Promise<Workers> {
  const plugins = await Promise.all(
    (options.plugins ?? []).map(async (plugin) => ({ plugin, found: await plugin.find() })),
  );
  const env: Record<string, string> = {};
  for (const { plugin, found } of plugins) if (found !== undefined) Object.assign(env, plugin.env(found));
  Object.assign(env, options.env);
  const onLost = lostAttemptsReporter(settings, options.onEvent ?? ((text) => console.error(text)));
  const served = (options.processes ?? PROCESSES).map((roles) => ({
    roles,
    process: new SupervisedProcess(
      roles.join() === 'learner' && options.learner
        ? options.learner
        : roleProcess(roles, settings, { ...env, ...shownAt(options.metrics?.[roles[0]!]) }),
      { onLost, ...options },
    ),
  }));
  const processes = served.map(({ process }) => process);
  for (const { plugin, found } of plugins) {
    if (found === undefined) continue;
    processes.push(new SupervisedProcess(plugin.process(found, settings, env), options));
  }
  try {
    await Promise.all(processes.map((process) => process.up()));
  } catch (error) {
    await Promise.all(processes.map((process) => process.stop()));
    throw error;
  }
  return {
    descriptions: [
      ...processes.flatMap((process) => process.descriptions),
      ...plugins.flatMap(({ plugin: { name, tiers }, found }) =>
        found === undefined
          ? [
              `${name}: ${tiers.join(' and ')} tiers have no worker; "${commandLine(`setup ${name}`)}" makes one`,
            ]
          : [],
      ),
    ],
    pid: (role) => served.find(({ roles }) => roles.includes(role))?.process.pid,
    longestBlock: (role) => {
      const process = served.find(({ roles }) => roles.includes(role))?.process;
      return process?.longestBlock ?? { busyMs: 0, wallMs: 0 };
    },
    ready: async () => {
      await Promise.all(processes.map((process) => process.up()));
    },
    stop: async () => {
      await Promise.all(processes.map((process) => process.stop()));
    },
  };
}

const shownAt = (address: string | undefined): Record<string, string> =>
  address === undefined ? {} : { [WORKER_METRICS]: address };

/** A Node process that serves queues. */
function roleProcess(
  roles: readonly Role[],
  settings: WorkerSettings,
  env: Record<string, string>,
): ProcessKind {
  return {
    title: `the worker for ${roles.join(', ')}`,
    spawn: (output) =>
      fork(MAIN, [...roles], {
        execArgv: [...OWN_LOADER],
        env: { ...inheritedEnvironment(), ...settingsToEnv(settings), ...env },
        stdio: ['ignore', output, output, 'ipc'],
        // A group of its own: Ctrl-C reaches the one who supervises, who then ends the workers in order.
        detached: true,
      }),
    whenReady: (child, ready, failed) =>
      child.on('message', ({ descriptions, failed: why }: { descriptions?: string[]; failed?: string }) => {
        if (descriptions) ready(descriptions);
        if (why !== undefined) failed(why);
      }),
    onMessage: (child, heard) => child.on('message', (message) => heard(message as WorkerMessage)),
  };
}
