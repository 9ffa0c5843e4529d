import { didYouMean } from '../../core/did-you-mean.ts';
import { GradusError } from '../../core/errors.ts';
import { findingsOf } from './findings.ts';
import type { Finding } from './findings.ts';
import type { Seen } from './look.ts';
import { Looker } from './looker.ts';
import type { Failure, Looked } from './looker.ts';
import { added } from './once-calls.ts';
import type { OnceCallCounts } from './once-calls.ts';
import { uncheckedOf } from './unchecked.ts';

export type { Finding } from './findings.ts';

export interface CheckOptions {
  /** Tasks of each split and level that are looked at, at most. */
  tasks?: number;
  /** How long one environment may take once it is prepared, seconds; a module may take as long to be loaded. */
  seconds?: number;
  /** Names of the environments that are looked at; all that the modules have unless given. */
  environments?: readonly string[];
  /**
   * Whether tools that must be called once only (`effect: 'once'`) are called, once in each of the expert's episodes. Unless
   * it is said they are not called: the expert reads what its demonstration says they answer.
   */
  performOnce?: boolean;
  /** Ends the check; what was not looked at by then is listed as such. */
  signal?: AbortSignal;
  /** Told what is being done, a line at a time. */
  say?: (line: string) => void;
  /** How often it is told what still goes on, seconds. */
  saySeconds?: number;
}

/** What became of one environment. */
export interface CheckedEnvironment {
  name: string;
  file: string;
  /** By its worst finding; `not-looked-at` where nothing is known of it. */
  outcome: 'nothing-found' | 'warnings' | 'errors' | 'not-looked-at';
  /** Why it was not looked at; null where it was. */
  why: string | null;
  seconds: number;
  levels: readonly number[];
  tools: readonly string[];
  verifiers: readonly string[];
  /** How many were made, in each of two processes. */
  tasks: number;
  /** Of the expert, and their turns. */
  episodes: number;
  turns: number;
  /** Calls of tools that must be called once only, in all processes. */
  onceCalls: OnceCallCounts;
  /** What could not be checked, in words. */
  notChecked: readonly string[];
}

export interface CheckReport {
  environments: CheckedEnvironment[];
  findings: Finding[];
}

const REMEDY =
  'Fix the module, then check again. If it only takes long, give it more --seconds or fewer --tasks.';
const SAY_SECONDS = 5;

/**
 * Looks at the environments of modules (paths, from the working directory) in two processes: whether tasks are the same in
 * both, no task is in two splits, the expert's episodes can be played and are judged to be right. Each is looked at by
 * itself: one that hangs, or ends its process, keeps no other from being looked at. Runs the modules' code with the rights
 * of this process. An empty list of findings says that nothing was found, not that nothing is wrong.
 * Throws GradusError('environment', 'unknown') for a name that none of the environments has.
 */
export async function checkEnvironments(
  modules: readonly string[],
  {
    tasks: most = 200,
    seconds = 60,
    environments: chosen,
    performOnce = false,
    signal = new AbortController().signal,
    say = () => undefined,
    saySeconds = SAY_SECONDS,
  }: CheckOptions = {},
): Promise<CheckReport> {
  // Two processes must not both call what is to be called once.
  const one = new Looker(modules, { most, seconds, signal, performOnce });
  const other = new Looker(modules, { most, seconds, signal, performOnce: false });
  const began = performance.now();
  let doing = '';
  let since = began;
  const still = setInterval(() => {
    say(`${doing}${one.doing}, for ${((performance.now() - since) / 1000).toFixed(0)} s`);
  }, saySeconds * 1000);
  try {
    const [known] = await Promise.all([one.load(), other.load()]);
    const findings = [...new Map([...other.broken, ...one.broken]).values()].map((failure) =>
      findingOf(failure, null),
    );
    const wanted = known.filter(({ name }) => chosen?.includes(name) ?? true);
    if (!signal.aborted) assertKnown(chosen, known, findings);
    const environments: CheckedEnvironment[] = [];
    for (const [n, { name, file }] of wanted.entries()) {
      doing = `${n + 1} of ${wanted.length}, ${name}: `;
      since = performance.now();
      const looked = signal.aborted ? [] : await Promise.all([one.look(name), other.look(name)]);
      const judged = judge(name, looked, signal.aborted);
      const took = (performance.now() - since) / 1000;
      environments.push({ name, file, seconds: Number(took.toFixed(3)), ...judged.environment });
      findings.push(...judged.findings);
      say(`${doing}${inWords(judged)}, ${took.toFixed(1)} s`);
    }
    return { environments, findings };
  } finally {
    clearInterval(still);
    one.close();
    other.close();
  }
}

function assertKnown(
  chosen: readonly string[] | undefined,
  known: readonly { name: string }[],
  findings: readonly Finding[],
): void {
  const names = known.map(({ name }) => name);
  const unknown = chosen?.find((name) => !names.includes(name));
  // It may be of a module that is broken.
  if (unknown === undefined || findings.length > 0 || names.length === 0) return;
  throw new GradusError(
    'environment',
    'unknown',
    `the modules have no environment ${JSON.stringify(unknown)}${didYouMean(unknown, names)}`,
  );
}

interface Judged {
  environment: Omit<CheckedEnvironment, 'name' | 'file' | 'seconds'>;
  findings: Finding[];
}

function judge(name: string, looked: readonly Looked[], interrupted: boolean): Judged {
  const seen = looked.flatMap((look) => ('seen' in look ? [look.seen] : []));
  const failed = looked.find((look) => 'failed' in look)?.failed;
  if (interrupted || failed?.again === true) {
    const why = interrupted ? 'the check was interrupted' : failed!.what;
    return { environment: { ...factsOf([]), outcome: 'not-looked-at', why }, findings: [] };
  }
  const findings = [
    ...(failed ? [findingOf(failed, name)] : []),
    ...(seen[0] ? findingsOf(seen[0], seen[1]) : []),
  ];
  const errors = findings.some(({ is }) => is === 'error');
  const outcome = errors ? 'errors' : findings.length > 0 ? 'warnings' : 'nothing-found';
  return { environment: { ...factsOf(seen), outcome, why: null }, findings };
}

function factsOf(seen: readonly Seen[]): Omit<Judged['environment'], 'outcome' | 'why'> {
  const [first] = seen;
  const plays = first?.plays ?? [];
  return {
    levels: first?.levels ?? [],
    tools: first?.tools ?? [],
    verifiers: first?.verifiers ?? [],
    tasks: first?.tasks.length ?? 0,
    episodes: plays.length,
    turns: plays.reduce((sum, { play }) => sum + ('turns' in play ? play.turns.length : 0), 0),
    onceCalls: seen.reduce<OnceCallCounts>((sum, { onceCalls }) => added(sum, onceCalls), {}),
    notChecked: first ? uncheckedOf(first) : [],
  };
}

const findingOf = (failure: Failure, environment: string | null): Finding => ({
  is: 'error',
  environment,
  what: failure.what,
  remedy: failure.remedy ?? REMEDY,
});

const inWords = ({ environment: { outcome, why }, findings }: Judged): string =>
  why ?? (findings.length > 0 ? `${outcome} (${findings.length})` : 'nothing found');
