import { mkdir, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { startStack } from '../infra/dev/stack.ts';
import { readStack, stackEnvironment, stackLock } from '../infra/dev/stack-addresses.ts';
import type { StackAddresses } from '../infra/dev/stack-addresses.ts';
import type { Stack, StackOptions } from '../infra/dev/stack.ts';
import { blobCacheDir, DEFAULT_STATE_DIR, logsDir } from '../infra/dev/state-dir.ts';
import { lockHolder } from '../infra/setup/file-lock.ts';
import { startWorkers } from '../workers/all-in-one.ts';
import type { Workers, WorkersOptions } from '../workers/all-in-one.ts';
import { readSettings } from '../workers/settings.ts';
import type { WorkerSettings } from '../workers/settings.ts';

/** Servers and workers of one machine. */
export interface Installation {
  stack: Stack;
  workers: Workers;
  settings: WorkerSettings;
  /** Workers first, so that they end in order; then the servers. Safe to call twice. */
  stop(): Promise<void>;
}

export interface InstallationOptions
  extends StackOptions, Pick<WorkersOptions, 'processes' | 'env' | 'chemistry'> {
  stateDir?: string;
}

/** Throws what `startStack` and `startWorkers` throw; nothing is left running then. */
export async function startInstallation(options: InstallationOptions = {}): Promise<Installation> {
  const stateDir = path.resolve(options.stateDir ?? DEFAULT_STATE_DIR);
  const stack = await startStack(stateDir, options);
  const settings = settingsFor(stack, options.env);
  try {
    await linkTemporal(stack);
    const workers = await startWorkers(settings, {
      ...options,
      logFile: path.join(logsDir(stateDir), 'workers.log'),
    });
    let stopped: Promise<void> | undefined;
    const stop = async (): Promise<void> => {
      await workers.stop();
      await stack.stop();
    };
    return { stack, workers, settings, stop: () => (stopped ??= stop()) };
  } catch (error) {
    await stack.stop();
    throw error;
  }
}

/** The folder that has the Temporal CLI as `temporal`, for whoever types its commands. */
export const binDir = (stateDir: string): string => path.join(path.resolve(stateDir), 'bin');

/** The cached build is called temporal-cli; people type `temporal`. */
async function linkTemporal({ stateDir, temporal }: Stack): Promise<void> {
  const link = path.join(binDir(stateDir), 'temporal');
  await mkdir(binDir(stateDir), { recursive: true });
  await rm(link, { force: true });
  await symlink(temporal.cliPath, link);
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

/** Ends the installation on the first Ctrl-C or SIGTERM, at once on the second; resolves then. */
export function untilInterrupted(): Promise<void> {
  return new Promise((resolve) => {
    const first = (): void => {
      process.once('SIGINT', () => process.exit(130));
      process.once('SIGTERM', () => process.exit(143));
      resolve();
    };
    process.once('SIGINT', first);
    process.once('SIGTERM', first);
  });
}
