import { z } from 'zod';
import { GradusError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import type { Candidate, TierLimits, TierVerifier } from '../../contract/environment.ts';

/** What a judge writes: at least a score in [0, 1], and perhaps why. */
export interface JudgeAnswer {
  score: number;
  reason?: string | undefined;
}

export interface JudgeOptions {
  name: string;
  /** Yours; what the verdict depends on is added to it as a digest, so changing the rubric needs no new one. */
  version?: string;
  /** Up to and without `/chat/completions`, such as `http://127.0.0.1:8000/v1`. */
  baseUrl: string;
  model: string;
  /** The environment variable of the worker that holds the API key; without it none is sent. */
  apiKeyEnv?: string;
  /** What a good attempt is, and what each score stands for. */
  rubric: string;
  /**
   * The judge's answer, an object with `score` and perhaps `reason` and more; the model writes its fields in their
   * order. Otherwise a reason and a score of 0, 0.25, 0.5, 0.75 or 1.
   */
  schema?: z.ZodType<JudgeAnswer>;
  /** Which `response_format` the server understands; `text` sends none. The schema is always told in words, too. */
  responseFormat?: 'json_schema' | 'json_object' | 'text';
  /** Judges asked, each with a seed of its own. More than half must agree. */
  samples?: 1 | 3 | 5;
  /** Above 0 for more than one sample, which would all say the same. */
  temperature?: number;
  /** Scores of the same opinion lie at most so far apart. */
  agreeWithin?: number;
  /** What the judge sees after the task: every turn with its calls and what came back, or the answer alone. */
  shows?: 'turns' | 'answer';
  /** Asked first, and pure: a score, or null for what only the judge can decide. */
  rule?: (candidate: Candidate) => { score: number; evidence?: string } | null;
  /** Tokens that one answer may take; a longer one is cut off and counts for nothing. */
  maxTokens?: number;
  /** More fields of the request, for what a server calls otherwise; null takes a field out. */
  body?: Record<string, Json>;
  tier: TierVerifier['tier'];
  /** What a verdict of all samples is expected to cost. */
  cost: { seconds: number; usd: number };
  limits?: Partial<TierLimits>;
  /** US$ for a million tokens, by which the server's own count is paid. Without it a verdict costs no money. */
  prices?: { input: number; output: number };
}

export const ANSWER = z.strictObject({
  reason: z.string().describe('what in the attempt the score rests on, in one or two sentences'),
  score: z.literal([0, 0.25, 0.5, 0.75, 1]).describe('by the rubric; 1 is best'),
});

export type Judge = Required<Omit<JudgeOptions, 'apiKeyEnv' | 'rule' | 'prices'>> &
  Pick<JudgeOptions, 'apiKeyEnv' | 'rule' | 'prices'> & { limits: TierLimits; jsonSchema: Json };

const LIMITS: TierLimits = { timeoutSeconds: 120, heartbeatSeconds: 10, maxAttempts: 5 };

const amount = z.number().nonnegative();
const shape = z.object({
  name: z.string().min(1),
  baseUrl: z
    .url({
      protocol: /^https?$/,
      error: 'expected an http or https address such as http://127.0.0.1:8000/v1',
    })
    .refine((url) => !/[?#]|\/\/[^/]*@/.test(url), 'write no key, user or query into it; name apiKeyEnv'),
  model: z.string().min(1),
  apiKeyEnv: z
    .string()
    .regex(/^[A-Za-z_]\w*$/, 'expected the name of an environment variable, not the key itself')
    .optional(),
  rubric: z.string().trim().min(1),
  responseFormat: z.enum(['json_schema', 'json_object', 'text']),
  samples: z.literal([1, 3, 5]),
  temperature: z.number().min(0).max(2),
  agreeWithin: z.number().min(0).lt(0.5),
  shows: z.enum(['turns', 'answer']),
  maxTokens: z.int().positive(),
  tier: z.enum(['simulation', 'high-fidelity', 'world']),
  cost: z.object({ seconds: amount, usd: amount }),
  limits: z.object({
    timeoutSeconds: z.number().positive(),
    heartbeatSeconds: z.number().positive(),
    maxAttempts: z.int().positive(),
  }),
  prices: z.object({ input: amount, output: amount }).optional(),
});

/** With what was left open filled in. Throws GradusError('environment', 'judge') for options that cannot work. */
export function checkedOptions(options: JudgeOptions): Judge {
  const { samples = 1, schema = ANSWER } = options;
  const judge = {
    version: '1',
    responseFormat: 'json_schema' as const,
    temperature: samples === 1 ? 0 : 0.7,
    agreeWithin: 0,
    shows: 'turns' as const,
    maxTokens: 1024,
    body: {},
    ...options,
    samples,
    schema,
    limits: { ...LIMITS, ...options.limits },
  };
  const refuse = (field: string, message: string): never => {
    throw new GradusError(
      'environment',
      'judge',
      `The judge ${options.name} has a wrong ${field}: ${message}.`,
    );
  };
  const issue = shape.safeParse(judge).error?.issues[0];
  if (issue) refuse(issue.path.join('.'), issue.message);
  if (samples > 1 && judge.temperature === 0) {
    refuse('temperature', `at 0 all ${samples} samples say the same; set it above 0 or samples to 1`);
  }
  return { ...judge, jsonSchema: jsonSchemaOf(schema, refuse) };
}

function jsonSchemaOf(schema: z.ZodType, refuse: (field: string, message: string) => never): Json {
  let written: Record<string, unknown>;
  try {
    written = z.toJSONSchema(schema, { io: 'input' });
  } catch (error) {
    return refuse('schema', `it has no JSON schema (${(error as Error).message}); use types that JSON has`);
  }
  const { $schema: _, ...rest } = written;
  const required = rest['required'];
  if (rest['type'] !== 'object' || !Array.isArray(required) || !required.includes('score')) {
    refuse('schema', "expected an object with a 'score', such as z.strictObject({ score: z.number() })");
  }
  return rest as Json;
}
