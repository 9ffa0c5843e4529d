import { randomUUID } from 'node:crypto';
import type { RolloutGroup } from '../../core/episode/episode.ts';
import { succeeded } from '../../core/episode/reward.ts';
import { GradusError } from '../../core/errors.ts';
import { armName } from '../../core/names.ts';
import { RandomStream } from '../../core/random.ts';
import type { MadeTaskRef } from '../../core/refs.ts';
import type {
  KeepVariationsRequest,
  KeptVariations,
  VariedFailures,
  VaryFailuresRequest,
} from '../../core/requests/from-failures.ts';
import { keptVariations } from '../../core/training/from-failures.ts';
import type { CheckedVariations, Variation } from '../../core/training/from-failures.ts';
import { taskRefOf } from '../../core/training/tasks-again.ts';
import type { Dialect } from '../../engine/dialect/contract.ts';
import type { Varied } from '../../environments/contract/environment.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import type { HostCaller } from '../../environments/host/hosted-environment.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { loadTrajectories } from '../../store/rollout/trajectories.ts';
import { CRITIC, loadModelFiles, readManifest } from '../../store/training/checkpoints.ts';
import { doneRolloutKeys } from '../../store/training/done-rollouts.ts';
import { scoresCodec } from '../../store/training/scores.ts';
import { putTaskSource } from '../../store/training/task-source.ts';
import {
  findChecked,
  putChecked,
  putReferences,
  putVaried,
  readChecked,
} from '../../store/training/variations.ts';
import { IncidentList } from '../incident-list.ts';
import type { Speaking } from '../rollout/policies.ts';
import type { CurriculumDependencies } from './dependencies.ts';
import { dialectsOf } from './dialects.ts';
import { measuredPrompts, promptName } from './measured-prompts.ts';
import { verifiedSolution } from './verified-solution.ts';

type Failed = Omit<CheckedVariations['failed'][number], 'variations'>;

/**
 * Has the environment vary what an earlier stage failed, and looks at each variation: is it of the train split, new, and
 * solved by the environment's own expert? What is kept under the stage counts, whoever was first: another attempt has the
 * same.
 */
export async function varyFailures(
  { store, environments }: CurriculumDependencies,
  request: VaryFailuresRequest,
  signal: AbortSignal,
): Promise<VariedFailures> {
  const start = Date.now();
  const incidents = new IncidentList();
  const { value, ref } =
    (await findChecked(store, request, { signal })) ??
    (await check(store, environments, request, incidents.asker(signal)));
  return {
    checked: ref,
    references: value.references,
    critic: value.critic,
    spans: [{ part: 'verification', start, end: Date.now() }],
    incidents: incidents.all,
  };
}

async function check(
  store: ObjectStore,
  environments: Environments,
  request: VaryFailuresRequest,
  asker: HostCaller,
): ReturnType<typeof putChecked> {
  const { signal } = asker;
  const { checkpoint } = request;
  const [files, manifest, failed] = await Promise.all([
    loadModelFiles(store, checkpoint, { signal }),
    readManifest(store, checkpoint.manifest, { signal }),
    failedTasks(store, request, signal),
  ]);
  const { references, ...checked } = await checkedVariations(
    environments,
    dialectsOf(files),
    failed,
    request,
    asker,
  );
  const { weights } = checkpoint;
  const group = { id: 'references', weights, temperature: request.temperature, ...references };
  return putChecked(
    store,
    request,
    {
      ...checked,
      critic: manifest.files[CRITIC] !== undefined,
      references:
        references.tasks.length === 0 ? null : await putReferences(store, request, group, { signal }),
    },
    { signal },
  );
}

/** The tasks that fewer than half of their samples solved when they were drawn last; the latest first. */
async function failedTasks(
  store: ObjectStore,
  { run, from, arms, mostFailures, reward }: VaryFailuresRequest,
  signal: AbortSignal,
): Promise<Failed[]> {
  const names = new Set(arms.map(armName));
  const seen = new Set<string>();
  const failed: Failed[] = [];
  for (const key of (await doneRolloutKeys(store, run, from, { signal })).toReversed()) {
    if (failed.length >= mostFailures) break;
    const ref = (await store.head(key, { signal }))!;
    const { grows, tasks, episodes } = await loadTrajectories(store, ref, { signal });
    if (grows !== undefined) continue;
    tasks.forEach((task, at) => {
      const samples = episodes.filter((episode) => episode.task === at);
      // Alone it is a greedy sample, and behind a hint nobody failed the task itself.
      if (samples.length < 2 || task.learntBehind || task.ref.split !== 'train') return;
      const name = nameOf(task.ref);
      if (!names.has(armName(task.ref)) || seen.has(name)) return;
      const said = samples.map(({ outcome }) => outcome && succeeded(reward.components, outcome));
      const trials = said.filter((success) => typeof success === 'boolean').length;
      if (trials === 0) return;
      seen.add(name);
      const successes = said.filter((success) => success === true).length;
      if (2 * successes < trials) failed.push({ ref: task.ref, successes, trials });
    });
  }
  return failed.slice(0, mostFailures);
}

const nameOf = ({ source, ...ref }: MadeTaskRef): string =>
  JSON.stringify([armName(ref), ref.index, source?.sha256 ?? null]);

/** What the environment, its expert and the verifiers say of each variation of each failed task. */
export async function checkedVariations(
  environments: Environments,
  dialectFor: (environment: Speaking) => Dialect,
  failed: readonly Failed[],
  request: Pick<VaryFailuresRequest, 'run' | 'seed' | 'stage' | 'arms' | 'variations' | 'reward' | 'limits'>,
  asker: HostCaller,
): Promise<Omit<CheckedVariations, 'critic'> & { references: Pick<RolloutGroup, 'tasks' | 'episodes'> }> {
  const measured = await measuredPrompts(environments, request.arms, asker);
  const tasks: CheckedVariations['tasks'] = [];
  const references: Pick<RolloutGroup, 'tasks' | 'episodes'> = { tasks: [], episodes: [] };
  const known = new Set<string>();
  // An attempt that was given up may still play: its sessions are no others' sessions.
  const own = `${request.run}/${request.stage}/variation-${randomUUID()}`;
  /** Of one variation; what is a task joins the others. */
  const became = async (of: MadeTaskRef, varied: Varied | GradusError): Promise<Variation> => {
    if (varied instanceof GradusError) return { kind: 'none', reason: varied.message };
    if (varied.kind === 'none') return varied;
    const { split, proposal, canonical } = varied;
    if (split !== 'train') return { kind: 'set-aside', reason: `its problem is of the split ${split}` };
    const { environment, level } = of;
    const name = JSON.stringify([environment, level, canonical]);
    if (known.has(name)) return { kind: 'known' };
    known.add(name);
    const ref: MadeTaskRef = { ...taskRefOf(of), made: [proposal] };
    const id = `${own}/${known.size}`;
    const solved = await verifiedSolution(environments, dialectFor, ref, id, request, asker);
    if ('reason' in solved) return { kind: 'unsolved', reason: solved.reason };
    if (measured.has(promptName(environment, solved.task.prompt)))
      return { kind: 'set-aside', reason: 'a task that measures asks the same' };
    const reference = tasks.length;
    tasks.push({ arm: { environment, level }, of: taskRefOf(of), proposal, canonical });
    references.tasks.push(solved.task);
    references.episodes.push({ ...solved.episode, task: reference });
    return { kind: 'task', reference };
  };
  const all: CheckedVariations['failed'] = [];
  for (const one of failed) {
    const ways = new RandomStream(request.seed, 'variations', request.stage, nameOf(one.ref));
    const items = Array.from({ length: request.variations }, () => ({
      ref: one.ref,
      index: ways.int(0, 2 ** 30),
    }));
    const varied = await environmentOf(environments, one.ref.environment).variations(items, asker);
    const variations: Variation[] = [];
    for (const each of varied) variations.push(await became(one.ref, each));
    all.push({ ...one, variations });
  }
  return { failed: all, tasks, references };
}

/** Keeps what a critic says is neither out of reach nor known, as a task source under its own digest. */
export async function keepVariations(
  store: ObjectStore,
  { checked: ref, references, scores, values: bounds, ...request }: KeepVariationsRequest,
  signal: AbortSignal,
): Promise<KeptVariations> {
  const start = Date.now();
  const checked = await readChecked(store, ref, { signal });
  const values = references && scores ? await firstValues() : null;
  const { source: tasks, counts, facts } = keptVariations(checked, values, bounds);
  const source = facts.kept === 0 ? null : await putTaskSource(store, request.run, tasks, { signal });
  const wanted = { source, counts, facts: { ...facts, source: source?.sha256 ?? null }, values };
  const { values: _, ...kept } = await putVaried(store, request, wanted, { signal });
  return { ...kept, spans: [{ part: 'data', start, end: Date.now() }] };

  /** Of the state that each episode begins with: scores are end to end, over completions. */
  async function firstValues(): Promise<number[]> {
    const [{ values: ofTokens }, { episodes }] = await Promise.all([
      store.read(scores!, scoresCodec, { signal }),
      loadTrajectories(store, references!, { signal }),
    ]);
    let at = 0;
    return episodes.map(({ tokens, mask }) => {
      const first = at + mask.indexOf(1);
      at += tokens.length;
      return ofTokens![first]!;
    });
  }
}
