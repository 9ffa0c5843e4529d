import { z } from 'zod';
import type { Json } from '../../core/json/json.ts';
import { Problem, refuse } from '../problem.ts';

/** Throws Problem(400) with the first thing that is wrong. */
export function parsed<T>(schema: z.ZodType<T>, body: unknown): T {
  const { data, error } = schema.safeParse(body);
  if (!error) return data;
  const { path, message } = error.issues[0]!;
  const field = path.join('.');
  throw new Problem(400, 'invalid_request', `${field || 'The body'}: ${message}`, field || null);
}

export const parameters = z.record(z.string(), z.json()).nullish();

/** Parts of a content that are text; an agent's images and files no policy here reads. */
export const textParts = z.array(z.looseObject({ type: z.string(), text: z.string().optional() }));

export function textOfContent(content: string | z.output<typeof textParts> | null | undefined): string {
  if (typeof content === 'string') return content;
  return (content ?? [])
    .map(({ type, text }) => text ?? refuse('messages', `has a part of type ${type}: only text can be read`))
    .join('\n');
}

/** Whether tools may be called; throws Problem(400) for a call that is forced. */
export function mayCall(choice: Json | undefined): boolean {
  const kind = typeof choice === 'object' && choice !== null && 'type' in choice ? choice['type'] : choice;
  if (kind === undefined || kind === null || kind === 'auto') return true;
  if (kind === 'none') return false;
  return refuse(
    'tool_choice',
    `${JSON.stringify(choice)} cannot be forced on the policy: use "auto" or "none"`,
  );
}

/** How an answer of OpenAI's APIs says what was wrong. */
export const openaiProblem = ({ status, code, message, field }: Problem): Json => ({
  error: {
    message,
    type: status === 401 ? 'authentication_error' : status >= 500 ? 'server_error' : 'invalid_request_error',
    param: field,
    code,
  },
});
