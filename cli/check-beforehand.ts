import path from 'node:path';
import { GradusError } from '../core/errors.ts';
import { EnvironmentHost } from '../environments/host/environment-host.ts';
import { stackLock } from '../infra/dev/stack-addresses.ts';
import { DEFAULT_STATE_DIR } from '../infra/dev/state-dir.ts';
import { lockHolder } from '../infra/setup/file-lock.ts';
import { parseSpec, readShape } from '../spec/parse-spec.ts';
import { hostOptions, readHostSettings } from '../workers/settings.ts';
import { namingPlace, projectEnvironment, projectModules } from './project.ts';

// What a worker would refuse is known without servers, which take a minute, and at the first start ten. Only the store knows
// models, episodes and checkpoints that a spec names.

/**
 * Checks a spec against the environments of the project, before anything is started. Where another process holds servers
 * and workers up (`join`) these have their own environments, and its shape alone is checked.
 * Throws GradusError('spec' | 'environment', …) as a worker does, and says that nothing was started.
 */
export async function checkSpec(
  spec: unknown,
  workflowId: string,
  { stateDir = DEFAULT_STATE_DIR, join = false }: { stateDir?: string | undefined; join?: boolean } = {},
): Promise<void> {
  await sayingSo(async () => {
    readShape(spec);
    if (join && (await lockHolder(stackLock(path.resolve(stateDir)))) !== undefined) return;
    await withEnvironments((environments) => parseSpec(spec, workflowId, environments));
  });
}

/** Loads the modules that the project names, before anything is started. Throws GradusError('environment', …). */
export async function checkModules(): Promise<void> {
  if ((await projectModules()).files.length > 0) await sayingSo(() => withEnvironments(() => undefined));
}

/** In a process of their own, with what workers give them: what hangs there or dies is said in a sentence. */
async function withEnvironments(use: (environments: EnvironmentHost['environments']) => void): Promise<void> {
  const settings = readHostSettings({ ...process.env, ...(await projectEnvironment()) });
  let host: EnvironmentHost;
  try {
    host = await EnvironmentHost.open(hostOptions(settings));
  } catch (error) {
    throw namingPlace(error, await projectModules());
  }
  try {
    use(host.environments);
  } finally {
    await host.close();
  }
}

async function sayingSo(check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    if (!(error instanceof GradusError)) throw error;
    const { boundary, type, message } = error;
    throw new GradusError(boundary, type, `${message}\nNothing was started.`, { cause: error });
  }
}
