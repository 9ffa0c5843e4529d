import { mkdir, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import getPort from 'get-port';
import { LOOPBACK } from '../infra/dev/ports.ts';
import type { Role } from '../core/names.ts';
import { startStack } from '../infra/dev/stack.ts';
import { readStack, stackEnvironment, stackLock } from '../infra/dev/stack-addresses.ts';
import type { StackAddresses } from '../infra/dev/stack-addresses.ts';
import type { Stack, StackOptions } from '../infra/dev/stack.ts';
import { blobCacheDir, DEFAULT_STATE_DIR, logsDir } from '../infra/dev/state-dir.ts';
import { dashboardProcess } from '../dashboard/process.ts';
import { lockHolder } from '../infra/setup/file-lock.ts';
import { PROCESSES, startWorkers } from '../workers/all-in-one.ts';
import type { Workers, WorkersOptions } from '../workers/all-in-one.ts';
import { sdkMetrics } from '../workers/sdk-metrics.ts';
import { readSettings } from '../workers/settings.ts';
import { SupervisedProcess } from '../workers/supervised-process.ts';
import type { ProcessKind } from '../workers/supervised-process.ts';
import type { WorkerSettings } from '../workers/settings.ts';

/** Servers and workers of one machine. */
export interface Installation {
  stack: Stack;
  workers: Workers;
  /** Where the dashboard is; null where it was not asked for. */
  dashboard: string | null;
  settings: WorkerSettings;
  /** Workers first, so that they end in order; then the servers. Safe to call twice. */
  stop(): Promise<void>;
}

export interface InstallationOptions
  extends StackOptions, Pick<WorkersOptions, 'processes' | 'env' | 'plugins'> {
  stateDir?: string;
  /** What learns in place of the learner of this program. */
  learner?: (settings: WorkerSettings) => ProcessKind;
  /** Where alerts are posted besides; default GRADUS_ALERT_WEBHOOK. */
  alertWebhook?: string;
  /** Serve the pages that show runs and steer them, on loopback; a number is the port. */
  dashboard?: boolean | number;
}

/** Throws what `startStack` and `startWorkers` throw; nothing is left running then. */
export async function startInstallation(options: InstallationOptions = {}): Promise<Installation> {
  const stateDir = path.resolve(options.stateDir ?? DEFAULT_STATE_DIR);
  const stack = await startStack(stateDir, options);
  const settings = settingsFor(stack, options.env);
  let pages: SupervisedProcess | undefined;
  try {
    await linkTemporal(stack);
    const metrics = await metricsPorts(options);
    const { learner, ...others } = options;
    const starting = startWorkers(settings, {
      ...others,
      ...(learner && { learner: learner(settings) }),
      metrics,
      logFile: path.join(logsDir(stateDir), 'workers.log'),
    });
    pages = startDashboard(stack, settings, options, metrics);
    const [workers] = await Promise.all([starting, pages?.up()]);
    let stopped: Promise<void> | undefined;
    const stop = async (): Promise<void> => {
      await Promise.all([workers.stop(), pages?.stop()]);
      await stack.stop();
    };
    return {
      stack,
      workers,
      settings,
      dashboard: pages?.descriptions[0] ?? null,
      stop: () => (stopped ??= stop()),
    };
  } catch (error) {
    await pages?.stop();
    await stack.stop();
    throw error;
  }
}

/**
 * Where each worker process shows what Temporal's SDK measures in it, by its first role: from the port that
 * GRADUS_WORKER_METRICS names on, or, for the pages, at free ones of this machine. None where it is exported by OTLP.
 */
async function metricsPorts({
  processes = PROCESSES,
  dashboard = false,
}: InstallationOptions): Promise<Shown> {
  const { metrics } = sdkMetrics(process.env);
  if (metrics && 'otel' in metrics) return {};
  const roles = processes.map(([role]) => role!);
  if (metrics && 'prometheus' in metrics) {
    const [, host, port] = /^(.*):(\d+)$/.exec(metrics.prometheus.bindAddress)!;
    return Object.fromEntries(roles.map((role, i) => [role, `${host}:${Number(port) + i}`]));
  }
  if (dashboard === false) return {};
  const free = roles.map(async (role) => [role, `${LOOPBACK}:${await getPort({ host: LOOPBACK })}`] as const);
  return Object.fromEntries(await Promise.all(free));
}
type Shown = Partial<Record<Role, string>>;

/** The pages, which may steer whatever runs here: only this machine reaches them. */
function startDashboard(
  { stateDir, temporal }: Stack,
  settings: WorkerSettings,
  { dashboard = false, onEvent }: InstallationOptions,
  metrics: Shown,
): SupervisedProcess | undefined {
  if (dashboard === false) return undefined;
  const kind = dashboardProcess(settings, {
    actions: true,
    temporalUi: temporal.uiAddress ?? null,
    workerMetrics: Object.entries(metrics).map(([worker, address]) => ({
      worker,
      url: `http://${address}/metrics`,
    })),
    ...(dashboard !== true && { port: dashboard }),
  });
  return new SupervisedProcess(kind, {
    logFile: path.join(logsDir(stateDir), 'dashboard.log'),
    ...(onEvent && { onEvent }),
  });
}

/** The folder that has the Temporal CLI as `temporal`, for whoever types its commands. */
export const binDir = (stateDir: string): string => path.join(path.resolve(stateDir), 'bin');

/** The cached build is called temporal-cli; people type `temporal`. Nothing here needs it, and it may not be there. */
async function linkTemporal({ stateDir, temporal }: Stack): Promise<void> {
  const link = path.join(binDir(stateDir), 'temporal');
  await mkdir(binDir(stateDir), { recursive: true });
  await rm(link, { force: true });
  if (temporal.cliPath !== undefined) await symlink(temporal.cliPath, link);
}

/** Servers and workers that another process holds up. */
export interface Joined {
  holder: number;
  stack: StackAddresses;
  settings: WorkerSettings;
}

/** Those of the state folder, where a process holds them up. Throws what `readStack` throws while they are starting. */
export async function joinInstallation(stateDir: string = DEFAULT_STATE_DIR): Promise<Joined | undefined> {
  const holder = await lockHolder(stackLock(path.resolve(stateDir)));
  if (holder === undefined) return undefined;
  const stack = await readStack(stateDir);
  return { holder, stack, settings: readSettings({ ...process.env, ...stackEnvironment(stack) }) };
}

/** How workers reach the servers of a stack. */
export function settingsFor(stack: Stack, env: Record<string, string> = {}): WorkerSettings {
  return readSettings({
    ...process.env,
    GRADUS_BLOB_CACHE: blobCacheDir(stack.stateDir),
    ...env,
    ...stackEnvironment(stack),
  });
}
