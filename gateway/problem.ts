import { messageOf } from '../core/errors.ts';

/** What was wrong with a request: each API says it in its own shape. */
export class Problem extends Error {
  readonly status: 400 | 401 | 404 | 409 | 413 | 429 | 500 | 503;
  /** For programs, such as `model_not_found`. */
  readonly code: string;
  /** The field of the request that it is about. */
  readonly field: string | null;

  constructor(status: Problem['status'], code: string, message: string, field: string | null = null) {
    super(message);
    this.name = 'Problem';
    this.status = status;
    this.code = code;
    this.field = field;
  }
}

/** Throws Problem(400) for a field that would change what is sampled, or ask for what there is not. */
export function refuse(field: string, why: string): never {
  throw new Problem(400, 'unsupported_parameter', `${field} ${why}`, field);
}

/** What no agent can help is for its client to try again. */
export const problemOf = (error: unknown): Problem =>
  error instanceof Problem ? error : new Problem(500, 'internal_error', messageOf(error));
