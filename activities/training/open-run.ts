import { GradusError } from '../../core/errors.ts';
import type { OpenRunRequest } from '../../core/requests/run.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import type { ModelSource } from '../../core/schema/model.ts';
import { withDialect } from '../../engine/dialect/checkpoint-dialect.ts';
import { assertSpeaks } from '../../spec/assert-speaks.ts';
import { parseSpec } from '../../spec/parse-spec.ts';
import { loadModelFiles } from '../../store/training/checkpoints.ts';
import { checkpointOf } from '../../store/training/find-checkpoints.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { claimRun } from '../../store/run/claim-run.ts';
import type { RunClaim } from '../../store/run/run-claim.ts';
import type { CurriculumDependencies } from './dependencies.ts';
import { assertDemonstrable } from './demonstrations.ts';
import { dialectsOf } from './dialects.ts';
import { withGiven } from './given-data.ts';
import { namedCheckpoints, pinNamed } from './named-checkpoints.ts';
import { assertTinkerTrains } from './tinker/assert-run.ts';
import { assertStored } from './stored-episodes.ts';

/** Reads the spec, and claims a name for the run in the store. Refuses a wrong spec before anything is spent. */
export async function openRun(
  { store, environments, tinker }: CurriculumDependencies,
  request: OpenRunRequest,
  signal: AbortSignal,
): Promise<CurriculumSpec> {
  const { spec: written, workflowId, firstExecutionRunId } = request;
  const parsed = parseSpec(written, runNameOf(workflowId), environments);
  if (tinker) assertTinkerTrains(parsed, await tinker(signal));
  const model: ModelSource =
    parsed.model.kind === 'scratch'
      ? parsed.model
      : {
          kind: 'from',
          checkpoint: await checkpointOf(store, parsed.model, { signal }),
          ...(parsed.model.dialect && { dialect: parsed.model.dialect }),
        };
  const spec: CurriculumSpec = { ...parsed, model };
  if (model.kind === 'from') {
    const files = await loadModelFiles(store, model.checkpoint, { signal });
    assertSpeaks(files, spec, model.dialect, environments);
    const spoken = model.dialect ? new Map([...files, ...withDialect(files, model.dialect)]) : files;
    await assertDemonstrable(environments, dialectsOf(spoken), spec, signal);
  }
  await assertStored(store, spec, signal);
  const stages = await withGiven(store, spec, environments, signal);
  const checkpoints = await namedCheckpoints(store, parsed.stages, signal);
  const claimed = await claimName(
    store,
    { ...spec, stages, ...checkpoints },
    { execution: firstExecutionRunId },
    signal,
  );
  await pinNamed(store, claimed, signal);
  return claimed;
}

/** The name of a run whose spec gives it none. */
export const runNameOf = (workflowId: string): string =>
  workflowId
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/\.{2,}/g, '.')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 100)
    .replace(/\.$/, '') || 'run';

/** How many runs of one name are looked at before giving up. */
const MOST_RUNS = 1000;

/**
 * The spec under the first of `name`, `name.2`, `name.3`, … that is free or already this execution's, as it was when the
 * name was claimed: which checkpoint is the newest of another run, say, is decided then. Objects are written once, so
 * a second run under the name of an earlier one would take over what that one left, and a name is not free while anything
 * lies under it. `isOwn` says of what else a claim is one's own.
 */
export async function claimName<Spec extends CurriculumSpec>(
  store: ObjectStore,
  spec: Spec,
  by: Pick<RunClaim, 'execution' | 'evaluation'>,
  signal: AbortSignal,
  isOwn: (owner: RunClaim) => boolean = () => false,
): Promise<Spec> {
  for (let i = 1; i <= MOST_RUNS; i++) {
    const run = i === 1 ? spec.run : `${spec.run}.${i}`;
    const owner = await claimRun(store, run, { ...by, spec }, { signal });
    // Only a spec of this kind is written by this execution.
    if (owner?.spec && (owner.execution === by.execution || isOwn(owner)))
      return { ...(owner.spec as Spec), run };
  }
  throw new GradusError(
    'store',
    'run-names',
    `${MOST_RUNS} runs are called "${spec.run}": choose another name`,
  );
}
