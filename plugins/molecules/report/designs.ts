import { meaningsOf, viewsOf } from '../../../activities/ladder/candidates.ts';
import type { TierView, Viewed } from '../../../activities/ladder/candidates.ts';
import type { ObjectStore } from '../../../store/objects/object-store.ts';
import { findVerdict } from '../../../activities/verification/verdict-cache.ts';
import { GradusError } from '../../../core/errors.ts';
import type { TaskRef } from '../../../core/refs.ts';
import type { TierAnswer } from '../../../core/tier-contract.ts';
import { hostedHere } from '../../../environments/host/hosted-environment.ts';
import type { HostedEnvironment } from '../../../environments/host/hosted-environment.ts';
import { checkMolecule } from '../../../environments/families/molecules/check-molecule.ts';
import { moleculesEnvironment } from '../../../environments/families/molecules/environment.ts';
import { loadRdkit } from '../../../environments/families/molecules/rdkit.ts';
import { targetAt } from '../../../environments/families/molecules/targets.ts';
import type { Target } from '../../../environments/families/molecules/targets.ts';
import { DFT_SCALE, onScale, XTB_SCALE } from '../../../environments/families/molecules/verifiers.ts';
import type { Properties } from '../../../environments/families/molecules/verifiers.ts';
import { inParallel } from '../../../store/in-parallel.ts';
import { readEpisodes } from './stored-episodes.ts';
import type { ReportEpisode } from './stored-episodes.ts';

/** What a tier has said of a molecule, for the target that it was designed for. */
export interface TierVerdict {
  /** In [0, 1]; null where it abstained. */
  score: number | null;
  /** On the scale of the targets; null for a tier that measures nothing, and where it abstained. */
  properties: Properties | null;
}

/** One episode of a run: what was wanted, what was written, and all that is known of it. */
export interface Design extends Pick<ReportEpisode, 'id' | 'stage' | 'basis'> {
  task: TaskRef;
  target: Target;
  /** Canonical SMILES; null for what is no molecule within the limits of the task. */
  smiles: string | null;
  /** By verifier; one that has not been asked is absent. */
  verdicts: Record<string, TierVerdict>;
}

/**
 * The stored episodes of some stages, with what these verifiers have said of them by now. Of those that failed only
 * those that failed at a tool are among them, which have designed nothing.
 * Throws GradusError('environment', 'not-molecules') for a run with other tasks.
 */
export async function readDesigns(
  store: ObjectStore,
  run: string,
  stages: readonly string[],
  verifiers: readonly string[],
): Promise<Design[]> {
  await loadRdkit();
  const environment = hostedHere(moleculesEnvironment());
  const stored = (await Promise.all(stages.map((stage) => readEpisodes(store, run, stage)))).flat();
  const read = await Promise.all(
    stored
      .filter(({ episode: { status } }) => status.kind !== 'failed' || status.boundary === 'tool')
      .map((one) => designOf(environment, run, one, verifiers)),
  );
  const asked = new Map(
    read.flatMap(({ views }) => views.map((view) => [nameOf(view), view.verifier.version] as const)),
  );
  const answers = new Map<string, TierAnswer | null>();
  await inParallel([...asked], async ([name, version]) => {
    const [verifier, digest] = name.split('/') as [string, string];
    answers.set(name, await findVerdict(store, { verifier, version, digest }));
  });
  for (const { design, viewed, views } of read) {
    for (const view of views) {
      const answer = answers.get(nameOf(view)) ?? null;
      if (answer === null) continue;
      const [meaning] = await meaningsOf([{ ...viewed, view: { ...view, answer } }], { signal });
      design.verdicts[view.verifier.name] = { score: meaning!.score, properties: propertiesOf(answer) };
    }
  }
  return read.map(({ design }) => design);
}

/** A person's command is ended by ending its process. */
const { signal } = new AbortController();

const nameOf = ({ verifier, digest }: TierView): string => `${verifier.name}/${digest}`;

interface Read {
  design: Design;
  viewed: Viewed;
  views: TierView[];
}

async function designOf(
  environment: HostedEnvironment,
  run: string,
  { id, stage, basis, task, episode }: ReportEpisode,
  verifiers: readonly string[],
): Promise<Read> {
  if (task.environment !== environment.name) {
    throw new GradusError(
      'environment',
      'not-molecules',
      `${run} has tasks of ${task.environment}; this report is about ${environment.name}`,
    );
  }
  const { split, level, index } = task;
  const target = targetAt(split, level, index);
  const answer = episode.status.kind === 'answered' ? episode.status.answer : null;
  const { score, molecule } = checkMolecule(answer, target);
  const viewed: Viewed = { environment, task, episode };
  const smiles = score === 1 && molecule !== null ? molecule.smiles : null;
  const design: Design = { id, stage, basis, task, target, smiles, verdicts: {} };
  const views: TierView[] = [];
  for (const name of new Set(verifiers)) {
    const verifier = environment.verifiers.find((other) => other.name === name);
    if (verifier?.tier === 'fast') {
      const [said] = await environment.verdicts([name], [{ ref: task, episode }], { signal });
      if (said instanceof GradusError) throw said;
      design.verdicts[name] = { score: said![0]!.score, properties: null };
    } else {
      const [view] = await viewsOf([viewed], name, { signal });
      if (view instanceof GradusError) throw view;
      if (view) views.push(view);
    }
  }
  return { design, viewed, views };
}

function propertiesOf(answer: TierAnswer): Properties | null {
  if (answer.kind !== 'measured') return null;
  return onScale(answer.values, answer.verifier === 'xtb' ? XTB_SCALE : DFT_SCALE) ?? null;
}
