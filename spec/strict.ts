import { closest, distance } from 'fastest-levenshtein';
import { z } from 'zod';
import { GradusError } from '../core/errors.ts';

export type Path = readonly PropertyKey[];

/** What is wrong with something that a person wrote, and where. */
export interface Problem {
  path: Path;
  message: string;
}

/**
 * Reads what a person wrote. Throws GradusError('spec', 'invalid'), not retryable, with one line per problem: its path,
 * what is wrong, and the nearest valid name. `what` is a noun, such as `the curriculum spec`.
 */
export function parseStrictly<Schema extends z.ZodType>(
  schema: Schema,
  written: unknown,
  what: string,
): z.output<Schema> {
  const parsed = schema.safeParse(written, { reportInput: true });
  if (parsed.success) return parsed.data;
  throw refusal(
    what,
    parsed.error.issues.flatMap((issue) => problemsOf(schema, issue)),
  );
}

export function refusal(what: string, problems: readonly Problem[]): GradusError {
  const lines = problems.map(({ path, message }) => `  ${showPath(path, what)}: ${message}`);
  return new GradusError('spec', 'invalid', `${what} was refused; nothing was started.\n${lines.join('\n')}`);
}

function showPath(path: Path, what: string): string {
  if (path.length === 0) return `(${what})`;
  return path
    .map((part, i) => (typeof part === 'number' ? `[${part}]` : i === 0 ? String(part) : `.${String(part)}`))
    .join('');
}

export function didYouMean(name: string, valid: readonly string[]): string {
  if (valid.length === 0) return '';
  const nearest = closest(name, [...valid]);
  const near = distance(name.toLowerCase(), nearest.toLowerCase()) <= Math.max(2, name.length / 3);
  return near ? `; did you mean "${nearest}"?` : `; valid: ${valid.join(', ')}`;
}

function problemsOf(schema: z.core.$ZodType, issue: z.core.$ZodIssue, above: Path = []): Problem[] {
  const path = [...above, ...issue.path];
  // JSON has no undefined: nobody wrote this value, so what it should have been is no help without saying so.
  if (issue.code === 'invalid_type' && issue.input === undefined) {
    return [{ path, message: `is missing: expected ${issue.expected}` }];
  }
  if (issue.code === 'unrecognized_keys') {
    const valid = fieldsAt(schema, path);
    return issue.keys.map((key) => ({
      path: [...path, key],
      message: `unknown field${didYouMean(key, valid)}`,
    }));
  }
  if (issue.code === 'invalid_value' && issue.values.length > 0) {
    return [{ path, message: `must be ${issue.values.map((value) => JSON.stringify(value)).join(' or ')}` }];
  }
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    // What was meant is the branch that got furthest: whose first problem lies deepest, and that has fewest.
    const depth = (issues: readonly z.core.$ZodIssue[]): number =>
      Math.min(...issues.map((one) => one.path.length + (one.code === 'unrecognized_keys' ? 1 : 0)));
    const [meant] = issue.errors.toSorted((a, b) => depth(b) - depth(a) || a.length - b.length);
    return meant!.flatMap((one) => problemsOf(schema, one, path));
  }
  return [{ path, message: issue.message.replace(/^Invalid input: /, '') }];
}

/** The fields that an object of the schema may have at a path; of a union, those of all its branches. */
function fieldsAt(schema: z.core.$ZodType, path: Path): string[] {
  const inner = unwrap(schema);
  const [head, ...rest] = path;
  if (inner instanceof z.ZodUnion) {
    return [...new Set(inner.options.flatMap((option) => fieldsAt(option, path)))];
  }
  if (inner instanceof z.ZodObject) {
    if (head === undefined) return Object.keys(inner.shape);
    const field: z.core.$ZodType | undefined = inner.shape[String(head)];
    return field === undefined ? [] : fieldsAt(field, rest);
  }
  if (head === undefined) return [];
  if (inner instanceof z.ZodArray) return fieldsAt(inner.element, rest);
  if (inner instanceof z.ZodRecord) return fieldsAt(inner.valueType, rest);
  return [];
}

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  let at = schema;
  while (at instanceof z.ZodPipe || isAround(at)) at = at instanceof z.ZodPipe ? at.out : at.unwrap();
  return at;
}

const isAround = (at: z.core.$ZodType): at is z.ZodDefault | z.ZodPrefault | z.ZodOptional | z.ZodNullable =>
  at instanceof z.ZodDefault ||
  at instanceof z.ZodPrefault ||
  at instanceof z.ZodOptional ||
  at instanceof z.ZodNullable;
