import { GradusError, type Boundary } from '../../../core/errors.ts';
import type { Weights } from '../../../core/model/config.ts';
import type { LocalLearnerOptions } from '../local-learner.ts';
import type { Written } from './shared-file.ts';
import type {
  ComputeSettings,
  Learner,
  ScoredBatch,
  ScoreQuery,
  Teacher,
  TrainBatch,
  TrainMetrics,
  TrainSettings,
  TrainState,
} from '../contract.ts';

/** Large things cross once: the learner process keeps them under these numbers, as long as its parent says so. */
export type Sent<T> = { id: number; value?: T };

export type ToLearner =
  | { kind: 'start'; options: LocalLearnerOptions }
  /** A `StepRequest` lies in the file that both processes hold, or a `ScoringRequest`. */
  | { kind: 'step' | 'score'; request: Written };

interface Request {
  /** Of what the process holds, what is still wanted: all else is forgotten. */
  keep: number[];
}

export interface StepRequest extends Request {
  parent: Sent<TrainState>;
  batch: TrainBatch;
  settings: TrainSettings;
  reference: Sent<Weights> | undefined;
  teachers: Sent<Teacher>[];
  /** The number that the new state is known by. */
  next: number;
}

type ScoredModel = Parameters<Learner['score']>[0];

export interface ScoringRequest extends Request {
  /** A state that is held, or a model whose weights may be. */
  model: Sent<ScoredModel> | (Omit<ScoredModel, 'weights'> & { weights: Sent<Weights> });
  batch: ScoredBatch;
  what: ScoreQuery;
  compute: ComputeSettings | undefined;
}

/** Without the weights where they are the parent's: an adapter's base is not sent back every step. */
export type SentState = Omit<TrainState, 'weights'> & { weights?: Weights };
/** The descriptor under which the learner process has the file. */
export const FILE = 4;

export type FromLearner =
  | { kind: 'ready'; backend: string }
  | { kind: 'progress'; done: number; total: number }
  /** A `SentState` lies in the file. */
  | { kind: 'done'; state: Written; metrics: TrainMetrics }
  /** `LearnerScores` lie in the file. */
  | { kind: 'scored'; scores: Written }
  | { kind: 'failed'; error: SentError };

export interface SentError {
  message: string;
  stack: string | undefined;
  gradus: { boundary: Boundary; type: string; retryable: boolean } | undefined;
  /** Of what the system said, such as ENOSPC. */
  code?: string;
}

export function toSentError(error: unknown): SentError {
  if (!(error instanceof Error)) return { message: String(error), stack: undefined, gradus: undefined };
  const { message, stack, code } = error as NodeJS.ErrnoException;
  const gradus =
    error instanceof GradusError
      ? { boundary: error.boundary, type: error.type, retryable: error.retryable }
      : undefined;
  return { message, stack, gradus, ...(typeof code === 'string' && { code }) };
}

export function fromSentError({ message, stack, gradus, code }: SentError): Error {
  const error = gradus
    ? new GradusError(gradus.boundary, gradus.type, message, { retryable: gradus.retryable })
    : Object.assign(new Error(message), code !== undefined && { code });
  if (stack !== undefined) error.stack = stack;
  return error;
}
