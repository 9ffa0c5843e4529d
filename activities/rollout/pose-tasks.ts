import { GradusError } from '../../core/errors.ts';
import type { TaskRef } from '../../core/refs.ts';
import type { AskKinds } from '../../environments/host/asks.ts';
import { askByEnvironment } from '../../environments/host/ask-by-environment.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import type { HostCaller } from '../../environments/host/hosted-environment.ts';
import { inAttempts } from '../../environments/host/in-attempts.ts';
import { runKey } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { runClaims } from '../../store/run/run-claim.ts';

/**
 * The same coordinates are other tasks where their source is another one.
 * Throws GradusError('environment', 'version'), retryable: another worker may have the one that the run began with.
 */
export async function assertVersions(
  { store, environments }: { store: ObjectStore; environments: Environments },
  run: string,
  refs: readonly TaskRef[],
  signal: AbortSignal,
): Promise<void> {
  const used = [...new Set(refs.map(({ environment }) => environment))];
  const versioned = used
    .map((name) => environmentOf(environments, name))
    .filter(({ version }) => version !== null);
  if (versioned.length === 0) return;
  const claim = await store.find(runKey(run), runClaims, { signal });
  for (const { name, file, version } of versioned) {
    const begun = claim?.spec?.taskVersions?.[name];
    if (begun === undefined || begun === version) continue;
    throw new GradusError(
      'environment',
      'version',
      `${run} began with the tasks of ${name} in version ${begun}, and ${file} now has ${version}: put the source of its tasks back as it was, or begin a new run`,
      { retryable: true },
    );
  }
}

export type Posed = AskKinds['tasks']['answer'] | GradusError;

/** Attempts at a task whose source says that it may be there soon, and the pause before the second, milliseconds. */
const POSE_ATTEMPTS = 5;
const POSE_PAUSE_MS = 200;

export async function posedBy(
  environments: Environments,
  refs: readonly TaskRef[],
  asker: HostCaller,
): Promise<Posed[]> {
  const posed: Posed[] = [];
  let left = [...refs.keys()];
  const pose = async (): Promise<void> => {
    const answers = await askByEnvironment(
      left.map((i) => refs[i]!),
      (ref) => environmentOf(environments, ref.environment),
      (environment, some) => environment.tasks(some, asker),
    );
    answers.forEach((one, n) => (posed[left[n]!] = one));
    left = left.filter((i) => {
      const one = posed[i];
      return one instanceof GradusError && one.retryable;
    });
    if (left.length > 0) throw posed[left[0]!] as GradusError;
  };
  const { signal } = asker;
  await inAttempts(pose, { attempts: POSE_ATTEMPTS, firstPauseMs: POSE_PAUSE_MS, signal }).catch(
    (error: unknown) => {
      // Why a task could not be posed its episodes say.
      if (!posed.includes(error as Posed)) throw error;
    },
  );
  return posed;
}
