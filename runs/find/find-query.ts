import { z } from 'zod';
import { OBSERVED_ERRORS } from '../../core/episode/facts.ts';
import type { EpisodeFacts } from '../../core/episode/facts.ts';
import { GradusError } from '../../core/errors.ts';

export const SORTS = ['step', 'reward', 'tokens', 'turns', 'tool-seconds'] as const;
export type Sort = (typeof SORTS)[number];
export const OUTCOMES = ['scored', 'truncated', 'abstained', 'pending', 'failed'] as const;
export const SPLITS = ['train', 'heldout', 'test'] as const;
export const ORDERS = ['ascending', 'descending'] as const;
export const SUCCESS = ['yes', 'no', 'unknown'] as const;
export const HINT = ['yes', 'no'] as const;
export const ANY_ERROR = 'any';

const text = z.string().min(1).max(200);
const number = z
  .string()
  .refine((written) => written.trim() !== '' && Number.isFinite(Number(written)), 'it is no number')
  .transform(Number);
const several = <T extends z.ZodType>(one: T) => z.array(one).default([]);

/** Each of what is asked is one word of a link, a form or a command: the same in all of them. */
const shape = {
  stage: several(text),
  environment: several(text),
  level: several(number),
  split: several(z.enum(SPLITS)),
  outcome: several(z.enum(OUTCOMES)),
  success: several(z.enum(SUCCESS)),
  hint: several(z.enum(HINT)),
  'from-step': number.optional(),
  'to-step': number.optional(),
  'min-reward': number.optional(),
  'max-reward': number.optional(),
  'min-tokens': number.optional(),
  'max-tokens': number.optional(),
  'min-turns': number.optional(),
  'max-turns': number.optional(),
  tool: text.optional(),
  error: z.enum([ANY_ERROR, ...OBSERVED_ERRORS]).optional(),
  text: text.optional(),
  sort: z.enum(SORTS).default('step'),
  order: z.enum(ORDERS).default('ascending'),
};
const schema = z.strictObject(shape);

/** What is looked for among the episodes of a run; whatever is absent, or empty, lets everything pass. */
export type Query = z.infer<typeof schema>;
export type QueryName = keyof typeof shape;
export const QUERY_NAMES = Object.keys(shape) as QueryName[];

const SEVERAL: readonly QueryName[] = [
  'stage',
  'environment',
  'level',
  'split',
  'outcome',
  'success',
  'hint',
];

/**
 * What words say, by name; empty ones are as if they were not there, as a form sends them. Throws
 * GradusError('spec', 'invalid-query') that names the word and what there is.
 */
export function readQuery(words: Readonly<Record<string, readonly string[]>>): Query {
  const given: Record<string, unknown> = {};
  for (const [name, values] of Object.entries(words)) {
    const written = values.map((value) => value.trim()).filter((value) => value !== '');
    if (written.length === 0) continue;
    const isSeveral = SEVERAL.includes(name as QueryName);
    if (!isSeveral && written.length > 1) throw invalid(name, 'it is given more than once');
    given[name] = isSeveral ? written : written[0];
  }
  const { data, error } = schema.safeParse(given);
  if (data) return data;
  const { path, message } = error.issues[0]!;
  // What there is to look for is told who named something else.
  if (path.length === 0) throw invalid('the query', `${message}. There is ${QUERY_NAMES.join(', ')}`);
  throw invalid(String(path[0]), message);
}

const invalid = (name: string, why: string): GradusError =>
  new GradusError('spec', 'invalid-query', `${name} cannot be looked for: ${why}`);

/** The words that say a query, without those that say nothing. */
export function queryWords(query: Query): [QueryName, string][] {
  const usual = schema.parse({});
  return QUERY_NAMES.flatMap((name): [QueryName, string][] => {
    const value = query[name];
    if (value === undefined || value === usual[name]) return [];
    return (Array.isArray(value) ? value : [value]).map((one) => [name, String(one)]);
  });
}

/** Whether an episode is among what is looked for; its text is looked at elsewhere. */
export function matches(
  query: Query,
  { stage, step, facts }: { stage: string; step: number; facts: EpisodeFacts },
): boolean {
  const { tool, error } = query;
  return (
    isAmong(query.stage, stage) &&
    isWithin(step, query['from-step'], query['to-step']) &&
    isAmong(query.environment, facts.environment) &&
    isAmong(query.level, facts.level) &&
    isAmong<string>(query.split, facts.split) &&
    isAmong<string>(query.outcome, facts.outcome) &&
    isAmong(query.success, successOf(facts.success)) &&
    isAmong(query.hint, facts.hinted ? 'yes' : 'no') &&
    isWithin(facts.reward, query['min-reward'], query['max-reward']) &&
    isWithin(facts.sampledTokens, query['min-tokens'], query['max-tokens']) &&
    isWithin(facts.turns, query['min-turns'], query['max-turns']) &&
    (tool === undefined || Object.hasOwn(facts.tools, tool)) &&
    (error === undefined ||
      (error === ANY_ERROR ? Object.keys(facts.errors).length > 0 : facts.errors[error] !== undefined))
  );
}

const successOf = (success: boolean | null): (typeof SUCCESS)[number] =>
  success === null ? 'unknown' : success ? 'yes' : 'no';

const isAmong = <T>(wanted: readonly T[], value: T): boolean => wanted.length === 0 || wanted.includes(value);

/** What is not known is within no bounds. */
const isWithin = (value: number | null, least: number | undefined, most: number | undefined): boolean =>
  (least === undefined && most === undefined) ||
  (value !== null && value >= (least ?? -Infinity) && value <= (most ?? Infinity));
