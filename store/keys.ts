import { GradusError } from '../core/errors.ts';
import { sha256Hex } from './digest.ts';

/** What every S3 server agrees on; a server that keeps objects as files also refuses `p` beside `p/q`. */
const ALLOWED = /^[A-Za-z0-9._/-]+$/;
const MAX_KEY = 1024;
const MAX_SEGMENT = 255;

/**
 * Throws GradusError('store', 'invalid-key') unless `key` is made of `[A-Za-z0-9._/-]` with no empty, `.` or `..`
 * segment. Never use a key that another key continues with `/`: a server that keeps objects as files refuses it.
 */
export function assertKey(key: string): void {
  const segments = key.split('/');
  const wrong =
    !ALLOWED.test(key) ||
    key.length > MAX_KEY ||
    key.includes('..') ||
    segments.some((segment) => segment === '' || segment === '.' || segment.length > MAX_SEGMENT);
  if (wrong) throw invalidKey(key);
}

/** Whether a name of the store may be one of a file in a folder: one part of a key, not hidden. */
export const isFileName = (name: string): boolean =>
  /^[A-Za-z0-9_][A-Za-z0-9._-]*$/.test(name) && !name.includes('..') && name.length <= MAX_SEGMENT;

const invalidKey = (key: string): GradusError =>
  new GradusError(
    'store',
    'invalid-key',
    `${JSON.stringify(key)} cannot be part of an object key: use letters, digits, "." "_" "-", and "/" between parts; no "..", no empty part`,
  );

function segment(name: string): string {
  assertKey(name);
  if (name.includes('/')) throw invalidKey(name);
  return name;
}

const padded = (step: number): string => String(step).padStart(6, '0');

/** Where everything of a run lies; ends with `/`. */
export const runPrefix = (run: string): string => `runs/${segment(run)}/`;

/** Where a run keeps its checkpoints; ends with `/`. */
export const checkpointsPrefix = (run: string): string => `${runPrefix(run)}checkpoints/`;

/** One checkpoint's folder: sorts by step, and is named after the weights, so two attempts that differ do not mix. */
export const checkpointFolder = (run: string, step: number, weights: string): string =>
  `${checkpointsPrefix(run)}${padded(step)}-${weights.slice(0, 12)}`;

/** The trajectories of one rollout group. `group` may have `/` in it. */
export const rolloutKey = (run: string, stage: string, step: number, group: string): string =>
  `runs/${segment(run)}/rollouts/${segment(stage)}/${padded(step)}/${group}.json`;

/** Where a stage's, or an evaluation's, trajectories are; ends with `/`. */
export const rolloutsPrefix = (run: string, stage: string): string =>
  `runs/${segment(run)}/rollouts/${segment(stage)}/`;

/** The batch that a learner step trains on. */
export const batchKey = (run: string, stage: string, step: number): string =>
  `runs/${segment(run)}/batches/${segment(stage)}/${padded(step)}.safetensors`;

/** What credit reads of the tokens of a step besides its episodes. */
export const scoresKey = (run: string, stage: string, step: number): string =>
  `runs/${segment(run)}/scores/${segment(stage)}/${padded(step)}.safetensors`;

/** What a reward stage learns from. */
export const rewardExamplesKey = (run: string, stage: string): string =>
  `runs/${segment(run)}/rewards/${segment(stage)}/examples.json`;

/** What a reward model has said of the episodes of a group. */
export const judgedKey = (run: string, stage: string, step: number, group: string): string =>
  `runs/${segment(run)}/rewards/${segment(stage)}/${padded(step)}/${segment(group)}.json`;

/** What the learner says of the fixed sequence under these weights. */
export const probeKey = (run: string, weights: string): string =>
  `runs/${segment(run)}/probes/${segment(weights)}.json`;

/** Where these weights stand on a server that trains them. */
export const tinkerKey = (run: string, weights: string): string =>
  `runs/${segment(run)}/tinker/${segment(weights)}.json`;

/** Which stored tasks a stage learns from. */
export const storedKey = (run: string, stage: string): string =>
  `runs/${segment(run)}/stored/${segment(stage)}.json`;

/** Which groups a step of an asynchronous stage has taken. */
export const takenKey = (run: string, stage: string, step: number): string =>
  `${takenPrefix(run, stage)}${padded(step)}.json`;

/** Where those of all steps of a stage are; ends with `/`. */
export const takenPrefix = (run: string, stage: string): string =>
  `runs/${segment(run)}/taken/${segment(stage)}/`;

/** The weights of an asynchronous stage after so many of its steps. */
export const versionKey = (run: string, stage: string, after: number): string =>
  `runs/${segment(run)}/versions/${segment(stage)}/${padded(after)}.json`;

/** Which groups of earlier steps a step has replayed. */
export const replayedKey = (run: string, stage: string, step: number): string =>
  `runs/${segment(run)}/replayed/${segment(stage)}/${padded(step)}.json`;

/** Tasks that policies have made, by what is in it. */
export const taskSourceKey = (run: string, sha256: string): string =>
  `runs/${segment(run)}/tasks/${segment(sha256)}.json`;

/** What the proposals of a step came to. */
export const proposalsKey = (run: string, stage: string, step: number): string =>
  `runs/${segment(run)}/proposals/${segment(stage)}/${padded(step)}.json`;

/** What a stage has made of failed tasks: what was said of each variation, and what was kept of them. */
export const variationsKey = (run: string, stage: string, what: 'checked' | 'kept'): string =>
  `runs/${segment(run)}/variations/${segment(stage)}/${what}.json`;

/** Episodes of the reference solutions of variations. */
export const referencesKey = (run: string, stage: string): string =>
  `runs/${segment(run)}/variations/${segment(stage)}/references.json`;

/** Data that a supervised stage has made, under its own digest, and what became of all that was looked at. */
export const synthesizedKey = (run: string, stage: string, sha256: string): string =>
  `runs/${segment(run)}/synthesis/${segment(stage)}/${segment(sha256)}.jsonl`;
export const synthesisKey = (run: string, stage: string): string =>
  `runs/${segment(run)}/synthesis/${segment(stage)}/made.json`;

/** A group of an earlier step that was chosen to be replayed. */
export const replayedCopyKey = (run: string, stage: string, step: number, group: string): string =>
  `runs/${segment(run)}/replayed/${segment(stage)}/${padded(step)}/${segment(group)}.json`;

/** Episodes on their way: one object per advance, named after where it stands. */
export const partKey = (run: string, stage: string, step: number, group: number, part: string): string =>
  `runs/${segment(run)}/parts/${segment(stage)}/${padded(step)}/${group}/${segment(part)}.json`;

/** What a long call brought; `call` is its idempotency key. */
export const observationKey = (run: string, call: string): string =>
  `runs/${segment(run)}/observations/${call}.json`;

/** An image that a tool showed in an episode of the run. */
export const imageKey = (run: string, sha256: string): string =>
  `runs/${segment(run)}/images/${segment(sha256)}`;

/** What a learner step measured. */
export const metricsKey = (run: string, stage: string, step: number): string =>
  `runs/${segment(run)}/metrics/${segment(stage)}/${padded(step)}.json`;

/** What a step left behind. */
export const stepFactsKey = (run: string, stage: string, step: number): string =>
  `${stepFactsPrefix(run, stage)}${padded(step)}.json`;

/** What a person answered to what the step asked. */
export const stepAnswerKey = (run: string, stage: string, step: number): string =>
  `${stepFactsPrefix(run, stage)}${padded(step)}.answer.json`;

/** Where the facts of a run's steps are; ends with `/`. */
export const stepsPrefix = (run: string): string => `runs/${segment(run)}/steps/`;

/** Where those of a stage are; ends with `/`. */
export const stepFactsPrefix = (run: string, stage: string): string =>
  `${stepsPrefix(run)}${segment(stage)}/`;

/** A change that a person has made of a run. */
export const changeKey = (run: string, number: number): string =>
  `${changesPrefix(run)}${padded(number)}.json`;

export const changesPrefix = (run: string): string => `runs/${segment(run)}/changes/`;

/** What an evaluation without a run came to. */
export const evaluationKey = (run: string): string => `runs/${segment(run)}/evaluation.json`;

/** Says which execution a run's name belongs to. */
export const runKey = (run: string): string => `runs/${segment(run)}/run.json`;

/** A name of any alphabet as part of a key: itself, or a digest of it. */
const named = (name: string): string =>
  /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(name) && name.length < 64
    ? name
    : `name-${sha256Hex(new TextEncoder().encode(name)).slice(0, 16)}`;

/** What another run needs of a run's checkpoints. */
export const pinsKey = (run: string, by: string): string => `${pinsPrefix(run)}${segment(by)}.json`;

export const pinsPrefix = (run: string): string => `runs/${segment(run)}/pins/`;

/** Data that somebody gave, for every run that is trained on it. */
export const dataKey = (sha256: string): string => `data/${segment(sha256)}.jsonl`;

/** What a verifier said of a subject, for ever. */
export const verdictKey = (verifier: string, version: string, digest: string): string =>
  `verdicts/${named(verifier)}/${named(version)}/${segment(digest)}.json`;

/** What a run has been told of a subject, where it asked. */
export const heardKey = (run: string, verifier: string, version: string, digest: string): string =>
  `runs/${segment(run)}/heard/${named(verifier)}/${named(version)}/${segment(digest)}.json`;

/** An abstention that holds for one run only. */
export const abstentionKey = (run: string, verifier: string, version: string, digest: string): string =>
  `runs/${segment(run)}/abstentions/${named(verifier)}/${named(version)}/${segment(digest)}.json`;

/** Who has counted the pairs of a subject in a run's calibration. */
export const pairKey = (run: string, verifier: string, digest: string): string =>
  `runs/${segment(run)}/pairs/${named(verifier)}/${segment(digest)}.json`;

/** A run's calibrations of all tiers after a request that moved them. */
export const calibrationKey = (run: string, writer: string, sequence: number): string =>
  `${calibrationPrefix(run)}${segment(writer)}/${padded(sequence)}.json`;

export const calibrationPrefix = (run: string): string => `runs/${segment(run)}/calibration/`;

/** One object of a run's ledger; sorts in the order in which its writer wrote. */
export const ledgerKey = (run: string, writer: string, sequence: number): string =>
  `${ledgerPrefix(run)}${segment(writer)}/${padded(sequence)}.json`;

/** Of such an object, and of what lies beside it under the same place. */
export const writerOf = (key: string): string => key.split('/').at(-2) ?? '';

export const ledgerPrefix = (run: string): string => `runs/${segment(run)}/ledger/`;

/** What a decision of a step on the ladder came to: everything that is written for it follows from this object. */
export const stepDecisionKey = (run: string, stage: string, step: number, decision: string): string =>
  `runs/${segment(run)}/decisions/${segment(stage)}/${padded(step)}/${segment(decision)}.json`;

/** The same of an older version, where it was named by its place in the ledger. */
export const decisionKey = (run: string, writer: string, sequence: number): string =>
  `runs/${segment(run)}/decisions/${segment(writer)}/${padded(sequence)}.json`;

/** What a plan asks, and what it had no budget for. */
export const asksKey = (run: string, writer: string, sequence: number): string =>
  `${asksPrefix(run)}${segment(writer)}/${padded(sequence)}.json`;

export const asksPrefix = (run: string): string => `runs/${segment(run)}/asks/`;

export const archiveKey = (run: string, writer: string, sequence: number): string =>
  `${archivePrefix(run)}${segment(writer)}/${padded(sequence)}.json`;

export const archivePrefix = (run: string): string => `runs/${segment(run)}/archive/`;

/** Where all trajectories of a run are; ends with `/`. */
export const rolloutsOfRun = (run: string): string => `runs/${segment(run)}/rollouts/`;

/** Scores of stored episodes by a verifier that was asked afterwards. */
export const reverifiedKey = (run: string, verifier: string, version: string, writer: string): string =>
  `runs/${segment(run)}/reverified/${named(verifier)}/${named(version)}/${segment(writer)}.json`;
