import { z } from 'zod';

// Fields that what people write has in common. Each has an upper bound, so that what could not be carried out, or not
// be paid, is refused before anything is spent.

export const fraction = z.number().min(0).max(1);
/** Adam divides by 1 − decay. */
export const decay = z.number().min(0).lt(1);

/** Above 0. `why` says what to do where it is more. */
export const positive = (most: number, why: string) =>
  z.number().positive().max(most, `must be at most ${most}: ${why}`);
export const amount = (most: number, why: string) =>
  z.number().min(0).max(most, `must be at most ${most}: ${why}`);
export const count = (most: number, why: string, least = 1) =>
  z.int().min(least).max(most, `must be at most ${most}: ${why}`);

const LETTERS =
  'use letters, digits, "_" and "-", with single dots between them, starting with a letter or digit';

/**
 * A name that becomes part of object keys and workflow ids. No two dots in a row and none at its end: `.held-out` and
 * `.2` are put behind names, and a key with `..` in it is none.
 */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$/;
export const name = z
  .string()
  .max(100, 'has at most 100 characters')
  .regex(NAME, LETTERS)
  // What is kept by stage is asked for by its name.
  .refine((text) => !(text in {}), {
    error: ({ input }) => `every object has a "${String(input)}": choose another name`,
  });
/** Of a run that is there: its number may stand behind its name. */
export const runName = z.string().max(110, 'has at most 110 characters').regex(NAME, LETTERS);
/** `RUN` or `RUN@STEP`: the last checkpoint of a run, or one of its others. */
export const checkpointName = z
  .string()
  .max(120, 'has at most 120 characters')
  .regex(
    new RegExp(`${NAME.source.slice(0, -1)}(@\\d{1,9})?$`),
    'name a run, or RUN@STEP; an imported model is the run of its name',
  );

/** `step` null: the last one. */
export function readCheckpointName(from: string): { run: string; step: number | null } {
  const [run, step] = from.split('@');
  return { run: run!, step: step === undefined ? null : Number(step) };
}

/** Of something that a module of the user's defines. */
export const givenName = z.string().min(1).max(200, 'has at most 200 characters');

const BUDGET = 'leave it out where there is no limit';
const limits = {
  count: z.int().min(0).max(1e9, BUDGET).optional().describe('Verdicts, or computations: see `counts`.'),
  seconds: amount(1e9, BUDGET).optional().describe('Seconds that the verifier computes.'),
  usd: amount(1e9, BUDGET).optional().describe('US$ that the verifier costs.'),
};
export const budget = z
  .strictObject({
    ...limits,
    perStep: count(1e6, BUDGET).optional().describe('The most that one step may spend of it.'),
  })
  .describe('What may be spent in each stage; a limit that is left out does not apply.');
/** Of something that runs by itself: one that names no limit would have none. */
export const wholeBudget = z
  .strictObject(limits)
  .refine(({ count: most, seconds, usd }) => (most ?? seconds ?? usd) !== undefined, {
    message: 'names no limit: give count, seconds or usd',
  });

const DAY = 24 * 3600;
export const concurrency = count(1000, 'more in flight at once than any tier has workers for');
export const deadlineSeconds = positive(
  30 * DAY,
  'a verdict that takes more than 30 days is late in any case',
);

/** The fields that were written. */
export const present = (written: object): [field: string, value: unknown][] =>
  Object.entries(written).filter(([, value]) => value !== undefined);

/** A section without the fields that were not written. */
export type Present<Written> = { [Field in keyof Written]: Exclude<Written[Field], undefined> };
