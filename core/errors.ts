/** Where a failure crossed into Gradus; what a person looks at first. */
export type Boundary =
  'policy' | 'tool' | 'verifier' | 'learner' | 'store' | 'spec' | 'environment' | 'infra';

/**
 * An error that says which boundary it crossed and whether trying again can help.
 * `message` tells the person what to do next. Activities turn it into a Temporal ApplicationFailure whose
 * type is `gradus.<boundary>.<type>`.
 */
export class GradusError extends Error {
  readonly boundary: Boundary;
  readonly type: string;
  readonly retryable: boolean;
  /** How long the other side asked to be left alone before the next attempt. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    boundary: Boundary,
    type: string,
    message: string,
    options: { retryable?: boolean; retryAfterSeconds?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'GradusError';
    this.boundary = boundary;
    this.type = type;
    this.retryable = options.retryable ?? false;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** The text of anything that can be thrown. */
export function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message;
  try {
    return String(error);
  } catch {
    return `something that is no text (${typeof error})`;
  }
}
