import { scoreOf, viewOf } from '../../activities/climbers.ts';
import type { RungView } from '../../activities/climbers.ts';
import { candidateOf, judgeBy } from '../../activities/judge.ts';
import type { ObjectStore } from '../../activities/store/object-store.ts';
import { findVerdict } from '../../activities/verdict-cache.ts';
import { GradusError } from '../../core/errors.ts';
import type { TaskRef } from '../../core/refs.ts';
import type { TierAnswer } from '../../core/tier-contract.ts';
import type { Candidate, Environment } from '../../environments/contract.ts';
import { checkMolecule } from '../../environments/molecules/check-molecule.ts';
import { moleculesEnvironment } from '../../environments/molecules/environment.ts';
import type { Target } from '../../environments/molecules/targets.ts';
import { DFT_SCALE, onScale, targetOf, XTB_SCALE } from '../../environments/molecules/verifiers.ts';
import type { Properties } from '../../environments/molecules/verifiers.ts';
import { inParallel } from './in-parallel.ts';
import { readEpisodes } from './stored-episodes.ts';
import type { StoredEpisode } from './stored-episodes.ts';

/** What a tier has said of a molecule, for the target that it was designed for. */
export interface TierVerdict {
  /** In [0, 1]; null where it abstained. */
  score: number | null;
  /** On the scale of the targets; null for a tier that measures nothing, and where it abstained. */
  properties: Properties | null;
}

/** One episode of a run: what was wanted, what was written, and all that is known of it. */
export interface Design extends Pick<StoredEpisode, 'id' | 'stage' | 'basis'> {
  task: TaskRef;
  target: Target;
  /** Canonical SMILES; null for what is no molecule within the limits of the task. */
  smiles: string | null;
  /** By verifier; one that has not been asked is absent. */
  verdicts: Record<string, TierVerdict>;
}

/**
 * The stored episodes of some stages, with what these verifiers have said of them by now. Episodes that an
 * infrastructure failure has ended are left out, as everywhere.
 * Throws GradusError('environment', 'not-molecules') for a run with other tasks.
 */
export async function readDesigns(
  store: ObjectStore,
  run: string,
  stages: readonly string[],
  verifiers: readonly string[],
): Promise<Design[]> {
  const environment = moleculesEnvironment();
  const stored = (await Promise.all(stages.map((stage) => readEpisodes(store, run, stage)))).flat();
  const read = await Promise.all(
    stored
      .filter(({ episode }) => episode.status.kind !== 'failed')
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
  for (const { design, candidate, views } of read) {
    for (const view of views) {
      const answer = answers.get(nameOf(view)) ?? null;
      if (answer === null) continue;
      const { score } = scoreOf({ ...view, answer }, candidate);
      design.verdicts[view.verifier.name] = { score, properties: propertiesOf(answer) };
    }
  }
  return read.map(({ design }) => design);
}

const nameOf = ({ verifier, digest }: RungView): string => `${verifier.name}/${digest}`;

interface Read {
  design: Design;
  candidate: Candidate;
  views: RungView[];
}

async function designOf(
  environment: Environment,
  run: string,
  { id, stage, basis, task, episode }: StoredEpisode,
  verifiers: readonly string[],
): Promise<Read> {
  if (task.environment !== environment.name) {
    throw new GradusError(
      'environment',
      'not-molecules',
      `${run} has tasks of ${task.environment}; this report is about ${environment.name}`,
    );
  }
  const candidate = candidateOf(environment, task, episode);
  const target = targetOf(candidate);
  const { score, molecule } = checkMolecule(candidate.answer, target);
  const smiles = score === 1 && molecule !== null ? molecule.smiles : null;
  const design: Design = { id, stage, basis, task, target, smiles, verdicts: {} };
  const views: RungView[] = [];
  for (const name of new Set(verifiers)) {
    const verifier = environment.verifiers.find((other) => other.name === name);
    if (verifier?.tier === 'fast') {
      const said = await judgeBy(verifier, candidate, new AbortController().signal);
      design.verdicts[name] = { score: said.score, properties: null };
    } else {
      const view = viewOf(environment, name, candidate);
      if (view) views.push(view);
    }
  }
  return { design, candidate, views };
}

function propertiesOf(answer: TierAnswer): Properties | null {
  if (answer.kind !== 'measured') return null;
  return onScale(answer.values, answer.verifier === 'xtb' ? XTB_SCALE : DFT_SCALE) ?? null;
}
