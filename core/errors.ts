/** Where a failure crossed into Gradus; what a person looks at first. */
export const BOUNDARIES = [
  'policy',
  'tool',
  'verifier',
  'learner',
  'store',
  'spec',
  'environment',
  'infra',
] as const;
export type Boundary = (typeof BOUNDARIES)[number];

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
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return `something that is no text (${typeof error})`;
  }
}

/** `instanceof` for what users' code has thrown, which may be a proxy that throws when it is looked at. */
export function isA<T>(value: unknown, type: new (...args: never[]) => T): value is T {
  try {
    return value instanceof type;
  } catch {
    return false;
  }
}
