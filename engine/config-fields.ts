import { GradusError } from '../core/errors.ts';
import { ARCHITECTURES } from './architectures.ts';
import type { Json } from '../core/json/json.ts';
import { inBrief } from './foreign-json.ts';

// Fields of a `config.json`, read strictly.

export type JsonObject = { [key: string]: Json };

/** `most`: what follows from the field is allocated, or gone through. */
export function countField(json: JsonObject, field: string, most: number, otherwise?: number): number {
  const value = json[field] ?? otherwise;
  const isCount = typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
  if (!isCount) throw invalid(`${field} must be a whole number above 0, and is ${show(value)}`);
  if (value > most) throw invalid(`${field} may be ${most} at most, and is ${value}`);
  return value;
}

export function positiveField(json: JsonObject, field: string, otherwise?: number): number {
  const value = json[field] ?? otherwise;
  if (typeof value === 'number' && Number.isFinite(value) && value > 0) return value;
  throw invalid(`${field} must be a number above 0, and is ${show(value)}`);
}

export function flag(json: JsonObject, field: string, otherwise: boolean): boolean {
  const value = json[field] ?? otherwise;
  if (typeof value === 'boolean') return value;
  throw invalid(`${field} must be true or false, and is ${show(value)}`);
}

export const isObject = (value: Json): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const show = (value: Json | undefined): string =>
  typeof value === 'string' ? value : value === undefined ? 'absent' : JSON.stringify(value);

export const unsupported = (what: string): GradusError =>
  new GradusError(
    'store',
    'unsupported-model',
    `config.json: ${inBrief(what)} cannot be run here; use a ${ARCHITECTURES.join(', ')} without it`,
  );

export const invalid = (what: string): GradusError =>
  new GradusError('store', 'invalid-config', `config.json: ${inBrief(what)}`);
