import { isDeepStrictEqual } from 'node:util';
import { GradusError } from '../../core/errors.ts';
import { EVALUATE, groupId } from '../../core/names.ts';
import { succeeded } from '../../core/episode/reward.ts';
import type { BlobRef } from '../../core/refs.ts';
import type {
  KeepEvaluationRequest,
  OpenedEvaluate,
  OpenEvaluateRequest,
} from '../../core/requests/evaluation.ts';
import type { AdoptRequest } from '../../core/requests/run.ts';
import type { GroupResult } from '../../core/requests/verification.ts';
import { dialectOfSpec } from '../../core/schema/dialect.ts';
import { fits } from '../../core/ladder/budget.ts';
import type { LedgerEntry } from '../../core/ladder/ledger.ts';
import { problemOfCaches } from '../../core/schema/beams.ts';
import type { EvaluateSpec, ExpectedVerdicts } from '../../core/schema/evaluate.ts';
import type { TaskSamples } from '../../core/training/evaluated.ts';
import { modelConfigOf } from '../../engine/hf-model-config.ts';
import { EventLoopTurns } from '../../engine/in-pieces.ts';
import { assertSpeaks } from '../../spec/assert-speaks.ts';
import { EVALUATION_INPUT, parseEvaluate, readEvaluate } from '../../spec/parse-evaluate.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import { readLedger } from '../../store/ladder/ledger.ts';
import { rolloutKey, rolloutsPrefix, runKey } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { findTrajectories, loadTrajectories } from '../../store/rollout/trajectories.ts';
import { putEvaluation } from '../../store/run/evaluation.ts';
import type { StoredEvaluation } from '../../store/run/evaluation.ts';
import { runClaims } from '../../store/run/run-claim.ts';
import { jsonOf, loadModelFiles, readManifest } from '../../store/training/checkpoints.ts';
import type { ModelFiles } from '../../store/training/checkpoints.ts';
import { checkpointNamed } from '../../store/training/find-checkpoints.ts';
import { tally } from '../verification/tally.ts';
import type { CurriculumDependencies } from './dependencies.ts';
import { evaluatedPolicy } from './evaluated-policy.ts';
import { pinNamed, unpinNamed } from './named-checkpoints.ts';
import { claimName, runNameOf } from './open-run.ts';

/**
 * Reads what is to be evaluated, and claims a name for it in the store. Refuses what is wrong before anything is spent.
 * Another execution of the same workflow id and the same input has the same name, and finds what the earlier one stored.
 */
export async function openEvaluate(
  { store, environments }: CurriculumDependencies,
  { spec: written, workflowId, firstExecutionRunId, held }: OpenEvaluateRequest,
  signal: AbortSignal,
): Promise<OpenedEvaluate> {
  const { checkpoint: named, dialect, dryRun } = readEvaluate(written);
  const name = runNameOf(workflowId);
  if (named === undefined) {
    const parsed = parseEvaluate(written, name, null, environments);
    const { count, samples } = parsed.evaluation;
    const expected = expectedVerdicts(parsed, environments);
    return { spec: null, counts: { count, samples }, ...(expected && { expected }), dryRun };
  }
  const { run, ref } = await checkpointNamed(store, named, { signal });
  const base = (await store.find(runKey(run), runClaims, { signal }))?.spec ?? null;
  const parsed = parseEvaluate(written, name, base, environments);
  const expected = expectedVerdicts(parsed, environments);
  const manifest = await readManifest(store, ref.manifest, { signal });
  const { policy, asks } = evaluatedPolicy(parsed.policy, manifest, held);
  if (policy && asks) return { spec: null, dryRun, ask: policy };
  const speaks = dialect && dialectOfSpec(dialect);
  const spec: EvaluateSpec = {
    ...parsed,
    ...(policy && { policy }),
    model: { kind: 'from', checkpoint: ref, ...(speaks && { dialect: speaks }) },
    checkpoints: { [`${run}@${ref.step}`]: ref },
  };
  const files = await loadModelFiles(store, ref, { signal });
  assertSpeaks(files, spec, speaks, environments, { what: EVALUATION_INPUT, at: 'dialect' });
  assertRoom(files, spec, named);
  if (dryRun) return { spec, ...(expected && { expected }), dryRun };
  const by = { execution: firstExecutionRunId, evaluation: workflowId };
  const claimed = await claimName(
    store,
    spec,
    by,
    signal,
    // Where an earlier execution left off this one goes on: two of one id never run at a time.
    (owner) => owner.evaluation === workflowId && isDeepStrictEqual(owner.spec, spec),
  );
  await pinNamed(store, claimed, signal);
  return { spec: claimed, ...(expected && { expected }), dryRun };
}

/**
 * What the verdicts of a tier may cost at most as it declares them, where one judges: every answer has one. Throws
 * GradusError('spec', 'invalid') where that may pass the tier's budget, which would leave a part of the answers unjudged.
 */
export function expectedVerdicts(
  { verification, evaluation }: Pick<EvaluateSpec, 'verification' | 'evaluation'>,
  environments: Environments,
): ExpectedVerdicts | undefined {
  if (!verification) return undefined;
  const { evaluateBy: verifier, rungs: tiers } = verification;
  const tier = tiers.find((one) => one.verifier === verifier)!;
  const expected: ExpectedVerdicts = { verifier, count: 0, seconds: 0, usd: 0 };
  for (let i = 0; i < evaluation.count; i++) {
    const { environment } = evaluation.arms[i % evaluation.arms.length]!;
    const { cost } = environmentOf(environments, environment).verifiers.find(
      ({ name }) => name === verifier,
    )!;
    expected.count += evaluation.samples;
    expected.seconds += evaluation.samples * cost.seconds;
    expected.usd += evaluation.samples * cost.usd;
  }
  const { perStep = Infinity, count = Infinity, seconds = Infinity, usd = Infinity } = tier.budget;
  const most = { count: Math.min(count, perStep), seconds, usd };
  for (const field of ['count', 'seconds', 'usd'] as const) {
    if (fits(most[field], expected[field])) continue;
    throw new GradusError(
      'spec',
      'invalid',
      `${EVALUATION_INPUT} was refused before anything was spent.\n  verification: ${expected.count} answers judged by ${verifier} may take ${shown(expected[field])} of ${field}, and its budget is ${most[field]}: lower count or samples, or raise the budget`,
    );
  }
  return expected;
}

const shown = (value: number): string => String(Number(value.toPrecision(6)));

function assertRoom(files: ModelFiles, { sampling, beams }: EvaluateSpec, named: string): void {
  const config = modelConfigOf(jsonOf(files, 'config.json'), jsonOf(files, 'tokenizer.json'));
  const { maxCompletionTokens: tokens } = sampling;
  const problem =
    tokens < config.maxPositions
      ? beams && problemOfCaches(config, beams, tokens)
      : `sampling.maxCompletionTokens: ${tokens} leaves no room for a prompt in the ${config.maxPositions} positions of ${named}: lower it`;
  if (!problem) return;
  const why = `${EVALUATION_INPUT} was refused before anything was spent.\n  ${problem}`;
  throw new GradusError('spec', 'invalid', why);
}

/** Groups that an earlier execution has stored, with what is counted of them; null where there is none yet. */
export async function adoptGroups(
  store: ObjectStore,
  { run, stage, step, from, to, reward }: AdoptRequest,
  signal: AbortSignal,
): Promise<(GroupResult | null)[]> {
  const numbers = Array.from({ length: to - from }, (_, i) => from + i);
  return Promise.all(
    numbers.map(async (group): Promise<GroupResult | null> => {
      const trajectories = await store.head(rolloutKey(run, stage, step, groupId(group)), { signal });
      if (!trajectories) return null;
      const stored = await loadTrajectories(store, trajectories, { signal });
      return { trajectories, ...(await tally(reward, stored, signal)), spans: [] };
    }),
  );
}

/** Keeps what was measured with every sample of every task, as it follows from the stored episodes. */
export async function keepEvaluation(
  store: ObjectStore,
  { spec, checkpoint, measured }: KeepEvaluationRequest,
  signal: AbortSignal,
): Promise<BlobRef> {
  const { run, reward } = spec;
  const tasks: TaskSamples[] = [];
  const loop = new EventLoopTurns(signal);
  for (const { key } of await store.list(rolloutsPrefix(run, EVALUATE), { signal })) {
    if (loop.due) await loop.take();
    // What a tier has judged stands beside what the lowest one said.
    if (spec.verification && !key.endsWith(JUDGED)) continue;
    const group = await findTrajectories(store, key, { signal });
    group?.tasks.forEach(({ ref }, task) => {
      const samples = group.episodes
        .filter((episode) => episode.task === task)
        .map((episode) => ({
          solved: succeeded(reward.components, episode.outcome!),
          turns: episode.turns.length,
          tokens: episode.tokens.length,
        }));
      tasks.push({ ...ref, samples });
    });
  }
  const verdicts = spec.verification && verdictsOf(await readLedger(store, run, { signal }));
  const { ref: kept } = await putEvaluation(
    store,
    { spec, checkpoint, measured, tasks, ...(verdicts && { verdicts }) },
    { signal },
  );
  await unpinNamed(store, spec, signal);
  return kept;
}

/** Of the key of a group that a tier above the lowest has judged. */
const JUDGED = '.judged.json';

/** What a tier was asked and what that cost, in all executions of an evaluation together. */
function verdictsOf(entries: readonly LedgerEntry[]): NonNullable<StoredEvaluation['verdicts']> {
  const verdicts = entries.flatMap((entry) => (entry.kind === 'verdict' ? [entry] : []));
  const paid = verdicts.flatMap(({ spent }) => spent ?? []);
  return {
    asked: verdicts.length,
    computed: paid.length,
    seconds: paid.reduce((sum, { seconds }) => sum + seconds, 0),
    usd: paid.reduce((sum, { usd }) => sum + usd, 0),
  };
}
