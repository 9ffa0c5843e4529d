import { fork } from 'node:child_process';
import { once } from 'node:events';
import { ownModule, TYPESCRIPT } from '../../engine/own-module.ts';
import { findingsOf } from './findings.ts';
import type { Finding } from './findings.ts';
import type { Seen } from './look.ts';
import type { FromLooker } from './process.ts';

export type { Finding } from './findings.ts';

export interface CheckOptions {
  /** Tasks of each split and level that are looked at, at most. */
  tasks?: number;
  /** How long one environment may take, seconds; a module may take as long to be loaded. */
  seconds?: number;
}

export interface Checked {
  /** What the first process saw; its environments are those that could be looked at. */
  environments: Seen[];
  findings: Finding[];
}

/** One process's look. */
interface Look {
  environments: Seen[];
  /** Why it did not come to its end, and in which environment. */
  failed: (Pick<Finding, 'environment' | 'what'> & { remedy?: string }) | null;
}

/** What takes as long as it may without keeping its process says so itself, in this time, seconds. */
const GRACE_S = 1;
const KEPT_REMEDY =
  'A run would end the process, with the other episodes in it: end the loop, or await what takes long.';

/**
 * Looks at the environments of modules (paths, from the working directory) in two processes: whether tasks are the same in
 * both, no task is in two splits, the expert's episodes can be played and are judged to be right. Runs the modules' code
 * with the rights of this process. An empty list of findings says that nothing was found, not that nothing is wrong.
 */
export async function checkEnvironments(
  modules: readonly string[],
  { tasks = 200, seconds = 60 }: CheckOptions = {},
): Promise<Checked> {
  const [one, other] = await Promise.all([
    lookOnce(modules, tasks, seconds),
    lookOnce(modules, tasks, seconds),
  ]);
  const failed = one.failed ?? other.failed;
  const findings = one.environments.flatMap((seen) =>
    findingsOf(
      seen,
      other.environments.find(({ name }) => name === seen.name),
    ),
  );
  if (failed !== null) {
    findings.unshift({
      is: 'error',
      remedy:
        'Mend the module, then check again. Where it only takes long, --seconds gives it more, or --tasks fewer.',
      ...failed,
    });
  }
  return { environments: one.environments, findings };
}

async function lookOnce(modules: readonly string[], tasks: number, seconds: number): Promise<Look> {
  const environments: Seen[] = [];
  let failed: Look['failed'] = null;
  let done = false;
  let doing = `Loading ${modules.join(', ')}`;
  let environment: string | null = null;
  const child = fork(ownModule('process', import.meta.url), [String(tasks), ...modules], {
    // The modules of users are TypeScript, also where ours are not.
    execArgv: ['--import', TYPESCRIPT],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const end = (how: string, remedy?: string): void => {
    failed = { environment, what: `${doing} ${how}`, ...(remedy !== undefined && { remedy }) };
    child.kill('SIGKILL');
  };
  const afterAll = (): NodeJS.Timeout =>
    setTimeout(() => {
      end(
        environment === null ? `took longer than ${seconds} s` : `was under way when ${seconds} s were over`,
      );
    }, seconds * 1000);
  let timer = afterAll();
  let mayKeep: number | undefined;
  let silence: NodeJS.Timeout | undefined;
  child.on('message', (message: FromLooker) => {
    if ('begun' in message) {
      doing = message.begun.what;
      mayKeep = message.begun.seconds;
    } else if (!('alive' in message)) {
      clearTimeout(timer);
      timer = afterAll();
      mayKeep = undefined;
      if ('loading' in message) doing = `Loading ${message.loading}`;
      else if ('looking' in message) environment = message.looking;
      else if ('seen' in message) environments.push(message.seen);
      else if ('failed' in message) failed = { environment, what: message.failed };
      else done = true;
    }
    clearTimeout(silence);
    if (mayKeep !== undefined) {
      const kept = mayKeep;
      silence = setTimeout(
        () => end(`kept its process for longer than ${kept} s`, KEPT_REMEDY),
        (kept + GRACE_S) * 1000,
      );
    }
  });
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  clearTimeout(timer);
  clearTimeout(silence);
  if (!done)
    failed ??= { environment, what: `${doing} ended the process (${signal ?? `exit code ${code}`})` };
  return { environments, failed };
}
