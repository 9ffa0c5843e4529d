import path from 'node:path';
import { GradusError } from '../core/errors.ts';
import { EnvironmentHost } from '../environments/host/environment-host.ts';
import { BUILT_IN } from '../environments/host/load-module.ts';
import { stackLock } from '../infra/dev/stack-addresses.ts';
import { DEFAULT_STATE_DIR } from '../infra/dev/state-dir.ts';
import { lockHolder } from '../infra/setup/file-lock.ts';
import type { SpecEnvironment, SpecEnvironments } from '../core/schema/check.ts';
import { parseSpec, readNames, readShape } from '../spec/parse-spec.ts';
import { hostOptions, readHostSettings } from '../workers/settings.ts';
import { note } from './printable.ts';
import { loadExtensions } from '../workers/load-extensions.ts';
import { namingPlace, projectEnvironment, projectExtensions, projectModules } from './project.ts';

// What a worker would refuse is known without servers, which take a minute, and at the first start ten. Only the store knows
// models, episodes and checkpoints that a spec names.

/**
 * Checks a spec against the environments of the project, before anything is started. Where another process holds servers
 * and workers up (`join`) these have their own environments, and its shape alone is checked.
 * Names of other trainers are noted on standard error.
 * Throws GradusError('spec' | 'environment', …) as a worker does, and says that nothing was started.
 */
export async function checkSpec(
  spec: unknown,
  workflowId: string,
  { stateDir = DEFAULT_STATE_DIR, join = false }: { stateDir?: string | undefined; join?: boolean } = {},
): Promise<void> {
  await sayingSo(async () => {
    const { hints } = readNames(spec);
    const written = readShape(spec);
    for (const hint of hints) note(`the curriculum spec: ${hint}`);
    if (join && (await lockHolder(stackLock(path.resolve(stateDir)))) !== undefined) return;
    await loadExtensions((await projectExtensions()).files);
    await withEnvironments(async (environments) => {
      parseSpec(spec, workflowId, await withTurnsOfDemonstrations(written, environments));
    });
  });
}

/** Loads the modules that the project names, before anything is started. Throws GradusError('environment', …). */
export async function checkModules(): Promise<void> {
  if ((await projectModules()).files.length > 0) await sayingSo(() => withEnvironments(() => undefined));
}

/** Demonstrations of a level that are looked at. */
const LOOKED_AT = 32;

/**
 * The environments with what those of the project show a supervised stage: whether an episode has room for it the run
 * would say only when it has a tokenizer. What `demonstrate()` throws the run says, too. Gradus's own are known to fit.
 */
async function withTurnsOfDemonstrations(
  { stages }: ReturnType<typeof readShape>,
  environments: EnvironmentHost['environments'],
): Promise<SpecEnvironments> {
  const known = new Map<string, SpecEnvironment>(environments);
  const shown = stages.filter(({ kind }) => kind === 'supervised').flatMap(({ tasks }) => tasks);
  for (const name of new Set(shown.map(({ environment }) => environment))) {
    const environment = environments.get(name);
    if (environment?.demonstrates !== true || environment.file === BUILT_IN) continue;
    const { levels, verifiers, relabels, proposals, varies, demonstrates, resume, version } = environment;
    const turnsOfDemonstrations = new Map<number, number>();
    for (const level of levels.filter((one) =>
      shown.some((tasks) => tasks.environment === name && tasks.levels.includes(one)),
    )) {
      const count = Math.min(LOOKED_AT, environment.taskCount('train', level));
      const items = Array.from({ length: count }, (_, index) => ({
        ref: { environment: name, split: 'train' as const, level, index },
        index: 0,
      }));
      const all = await environment.demonstrations(items, { signal: new AbortController().signal });
      const turns = all.flatMap((one) =>
        one instanceof GradusError || one.demonstration.weight <= 0 ? [] : [one.demonstration.turns.length],
      );
      if (turns.length > 0) turnsOfDemonstrations.set(level, Math.min(...turns));
    }
    const taskCount: SpecEnvironment['taskCount'] = (split, level) => environment.taskCount(split, level);
    known.set(name, {
      name,
      levels,
      verifiers,
      relabels,
      proposals,
      varies,
      demonstrates,
      resume,
      version,
      taskCount,
      turnsOfDemonstrations,
    });
  }
  return known;
}

/** In a process of their own, with what workers give them: what hangs there or dies is said in a sentence. */
async function withEnvironments(
  use: (environments: EnvironmentHost['environments']) => void | Promise<void>,
): Promise<void> {
  const settings = readHostSettings({ ...process.env, ...(await projectEnvironment()) });
  let host: EnvironmentHost;
  try {
    host = await EnvironmentHost.open(hostOptions(settings));
  } catch (error) {
    throw namingPlace(error, await projectModules());
  }
  try {
    await use(host.environments);
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
