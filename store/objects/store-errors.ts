import { GradusError, messageOf } from '../../core/errors.ts';
import { whenServerIsAway } from '../../core/installation.ts';

/** What was being done, for the message. */
export interface StoreCall {
  /** e.g. `http://127.0.0.1:9000`. */
  address: string;
  /** e.g. `put runs/a/b`. */
  doing: string;
}

const NETWORK = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ERR_STREAM_PREMATURE_CLOSE',
]);
const CREDENTIALS = new Set([
  'AccessDenied',
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'AccountProblem',
  'InvalidToken',
  'ExpiredToken',
  // versitygw's word for an access key that it does not know.
  'XAdminUserNotFound',
]);
const FULL = new Set(['InsufficientStorage', '507', 'XMinioStorageFull', 'QuotaExceeded', 'ENOSPC']);
const MISSING = new Set(['NoSuchKey', 'NotFound', 'NoSuchBucket']);
const PASSING = new Set(['RequestTimeout', 'SlowDown', 'ConditionalRequestConflict', 'OperationAborted']);

/** The S3 or system error code that an error carries, '' without one. */
export function errorCodeOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : '';
  return typeof code === 'string' || typeof code === 'number' ? String(code) : '';
}

export const isMissing = (error: unknown): boolean => MISSING.has(errorCodeOf(error));

/** Whether no server was reached, or it was lost before it had answered. */
export const isStoreUnreachable = (error: unknown): boolean => NETWORK.has(errorCodeOf(error));
export const isTimeout = (error: unknown): boolean => errorCodeOf(error) === 'ETIMEDOUT';

/** Whether the same request may well succeed within a second. */
export function isTransient(error: unknown): boolean {
  const code = errorCodeOf(error);
  return isStoreUnreachable(error) || PASSING.has(code) || (isServerFault(error) && !FULL.has(code));
}

/**
 * A GradusError at the boundary `store`: `unreachable`, `disk-full`, `unavailable`, and `credentials` and `clock`,
 * which are the worker's fault and not the run's (retryable); `missing-object`, `refused` (not retryable).
 */
export function storeError(error: unknown, { address, doing }: StoreCall): GradusError {
  if (error instanceof GradusError) return error;
  const code = errorCodeOf(error);
  const make = (type: string, advice: string, retryable: boolean): GradusError =>
    new GradusError(
      'store',
      type,
      `object store at ${address}, ${doing}: ${messageOf(error) || code}${code ? ` (${code})` : ''}. ${advice}`,
      { retryable, cause: error },
    );
  if (NETWORK.has(code)) {
    const advice = isTimeout(error)
      ? 'It is slow, or it hangs: see its load and its log'
      : whenServerIsAway(process.env, 'the address');
    return make('unreachable', advice, true);
  }
  if (FULL.has(code)) {
    return make(
      'disk-full',
      'Make room on the disk of the object store; the work goes on by itself then',
      true,
    );
  }
  if (code === 'RequestTimeTooSkewed') return make('clock', 'Set the clock of this machine', true);
  if (CREDENTIALS.has(code)) {
    return make('credentials', 'Correct the access key and secret key that this process was given', true);
  }
  if (MISSING.has(code)) {
    return make('missing-object', 'It was deleted, or never written: go back to an earlier one', false);
  }
  if (isTransient(error))
    return make('unavailable', 'It is tried again; look into the log of the server', true);
  return make('refused', 'The server does not allow this request: look into its log', false);
}

const isServerFault = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'status' in error && Number(error.status) >= 500;
