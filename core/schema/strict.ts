import { z } from 'zod';
import { counted } from '../counted.ts';
import { didYouMean, suggestion } from '../did-you-mean.ts';
import { GradusError } from '../errors.ts';

export type Path = readonly PropertyKey[];

/** What is wrong with something that a person wrote, and where. */
export interface SpecProblem {
  path: Path;
  message: string;
}

/** So many are enough to begin with, and so many characters: a refusal passes through the control plane. */
const MOST_PROBLEMS = 50;
const LONGEST_PROBLEM = 2000;

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
  const problems: SpecProblem[] = [];
  for (const issue of parsed.error.issues) {
    if (problems.length > MOST_PROBLEMS) break;
    problems.push(...problemsOf(schema, written, issue));
  }
  throw refusalOfSpec(what, problems);
}

export function refusalOfSpec(what: string, problems: readonly SpecProblem[]): GradusError {
  const lines = problems
    .slice(0, MOST_PROBLEMS)
    .map(({ path, message }) => cut(`  ${showPath(path, what)}: ${message}`));
  if (problems.length > MOST_PROBLEMS) lines.push('  and more');
  return new GradusError(
    'spec',
    'invalid',
    `${what} was refused before anything was spent.\n${lines.join('\n')}`,
  );
}

const cut = (line: string): string =>
  line.length <= LONGEST_PROBLEM ? line : `${line.slice(0, LONGEST_PROBLEM)}… (${line.length} characters)`;

export function showPath(path: Path, what: string): string {
  if (path.length === 0) return `(${what})`;
  return path
    .map((part, i) => {
      if (typeof part === 'number') return `[${part}]`;
      const name = String(part);
      if (!/^[\w$-]+$/u.test(name)) return `[${JSON.stringify(name)}]`;
      return i === 0 ? name : `.${name}`;
    })
    .join('');
}

/** `"a" or "b"` is what it must be; `was` is what was written. */
function oneOf(values: readonly unknown[], was: unknown): string {
  const names = values.filter((value) => typeof value === 'string');
  const nearest = typeof was === 'string' && names.length > 1 ? suggestion(was, names) : '';
  return `must be ${values.map((value) => JSON.stringify(value)).join(' or ')}${nearest}`;
}

type Schema = z.core.$ZodType;

/** `written` is all that `schema` was to read; the paths of issues begin at its top. */
function problemsOf(
  schema: Schema,
  written: unknown,
  issue: z.core.$ZodIssue,
  above: Path = [],
): SpecProblem[] {
  const path = [...above, ...issue.path];
  // JSON has no undefined: nobody wrote this value, so what it should have been is no help without saying so.
  if (issue.code === 'invalid_type' && issue.input === undefined) {
    return [{ path, message: `is missing: expected ${expected(issue)}` }];
  }
  if (issue.code === 'invalid_type' && isWhole(issue)) {
    return [{ path, message: `expected ${expected(issue)}, received ${JSON.stringify(issue.input)}` }];
  }
  if (issue.code === 'invalid_type' && issue.expected === 'object' && typeof issue.input === 'string') {
    const instead = asObject(issue.input, schemasAt(schema, written, path));
    return [{ path, message: `${inWords(issue)}${instead}` }];
  }
  if (issue.code === 'unrecognized_keys') {
    const owners = schemasAt(schema, written, path);
    const value = path.reduce<unknown>(inside, written);
    return issue.keys.slice(0, MOST_PROBLEMS + 1).map((key) => ({
      path: [...path, key],
      message: unknownField(key, owners, value),
    }));
  }
  if (issue.code === 'invalid_value' && issue.values.length > 0) {
    return [{ path, message: oneOf(issue.values, issue.input) }];
  }
  if (issue.code === 'invalid_key') {
    return issue.issues.map((one) => ({ path, message: `is no name for this: ${inWords(one)}` }));
  }
  if (issue.code === 'invalid_union' && 'options' in issue && issue.options) {
    const kinds = issue.options.filter((option) => option !== undefined);
    const was = path.reduce<unknown>(inside, written);
    const problem = { path, message: `${was === undefined ? 'is missing: ' : ''}${oneOf(kinds, was)}` };
    return [problem, ...misspelt(path, written)];
  }
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    // What was meant is the branch that got furthest: whose first problem lies deepest, and that has fewest.
    const depth = (issues: readonly z.core.$ZodIssue[]): number =>
      Math.min(...issues.map((one) => one.path.length + (one.code === 'unrecognized_keys' ? 1 : 0)));
    const [meant] = issue.errors.toSorted((a, b) => depth(b) - depth(a) || a.length - b.length);
    return meant!.flatMap((one) => problemsOf(schema, written, one, path));
  }
  return [{ path, message: inWords(issue) }];
}

/** What a bound counts. */
const UNITS: Readonly<Record<string, string>> = {
  number: '',
  int: '',
  string: 'character',
  array: 'element',
};

/** An issue as a schema words it, where it has words of its own; a bound that was passed, and by what, in ours. */
function inWords(issue: z.core.$ZodIssue): string {
  const isBound = issue.code === 'too_small' || issue.code === 'too_big';
  if (!isBound || !/^Too (small|big)/.test(issue.message) || !(issue.origin in UNITS))
    return issue.message.replace(/^Invalid input: /, '');
  const unit = UNITS[issue.origin]!;
  const [limit, side] =
    issue.code === 'too_small'
      ? [issue.minimum, issue.inclusive === false ? 'more than' : 'at least']
      : [issue.maximum, issue.inclusive === false ? 'less than' : 'at most'];
  const was = typeof issue.input === 'number' ? `, not ${issue.input}` : '';
  return unit === '' ? `must be ${side} ${limit}${was}` : `must have ${side} ${counted(Number(limit), unit)}`;
}

/** A kind that was written in place of the object that has it: what to write instead. */
function asObject(was: string, schemas: readonly Schema[]): string {
  for (const schema of schemas.map(unwrap)) {
    if (!(schema instanceof z.ZodDiscriminatedUnion)) continue;
    const { discriminator } = schema.def;
    const names = schema.options.flatMap((option) => literalOf(option, schema) ?? []);
    if (names.includes(was)) return `: write { "${discriminator}": "${was}" }`;
  }
  return '';
}

/** Where a field is missing that tells kinds apart, what may have been meant for it: other fields cannot be told without. */
function misspelt(path: Path, written: unknown): SpecProblem[] {
  const [above, field] = [path.slice(0, -1), String(path.at(-1))];
  const owner = Object(above.reduce<unknown>(inside, written)) as object;
  if (Object.hasOwn(owner, field)) return [];
  const key = Object.keys(owner).find((other) => suggestion(other, [field]) !== '');
  return key === undefined
    ? []
    : [{ path: [...above, key], message: `unknown field${suggestion(key, [field])}` }];
}

const isWhole = ({ expected: type }: z.core.$ZodIssueInvalidType): boolean => type === 'int';
const expected = (issue: z.core.$ZodIssueInvalidType): string =>
  isWhole(issue) ? 'a whole number' : issue.expected;

export const inside = (value: unknown, part: PropertyKey): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[part] : undefined;

/** More places than these are no help. */
const MOST_PLACES = 4;
/** What elements of many lists have says nothing of where it was meant to stand. */
const EVERYWHERE: ReadonlySet<string> = new Set(['kind', 'name']);

/** A field may be misspelt, one of another kind, or stand one or two levels too high. */
function unknownField(key: string, owners: readonly Schema[], value: unknown): string {
  const other = owners.flatMap((owner) => ofOtherKinds(key, owner, value));
  const objects = owners.flatMap((owner) => objectsOf(owner, value));
  const fields = [...new Set(objects.flatMap(({ shape }) => Object.keys(shape)))];
  const below = partsOf(objects, value);
  const where = meantIn(below, key);
  if (other.length > 0) return `${other.join(', ')}${where}`;
  return `unknown field${where || suggestion(key, fields, 1) || meantDeeper(below, key) || didYouMean(key, fields)}`;
}

/** Two levels down, where no level above has the name and few places do. */
function meantDeeper(below: readonly Part[], key: string): string {
  if (EVERYWHERE.has(key) || below.some((part) => hasField(part, key))) return '';
  const deeper = below.flatMap(({ at, objects, written }) =>
    partsOf(objects, written).map((part) => ({ ...part, at: `${at}.${part.at}` })),
  );
  return meantIn(deeper, key);
}

/** A field of objects, or the elements of a list that it is. */
interface Part {
  at: string;
  objects: z.ZodObject[];
  isList: boolean;
  /** What was written there; of a list nobody knows which element. */
  written: unknown;
}

const partsOf = (objects: readonly z.ZodObject[], value: unknown): Part[] =>
  objects.flatMap(({ shape }) =>
    Object.entries(shape).map(([field, schema]) => {
      const list = unwrap(schema);
      const written = inside(value, field);
      return list instanceof z.ZodArray
        ? { at: `${field}[…]`, objects: everyObjectOf(list.element), isList: true, written: undefined }
        : { at: field, objects: objectsOf(schema, written), isList: false, written };
    }),
  );

const hasField = ({ objects }: Part, key: string): boolean =>
  objects.some(({ shape }) => Object.hasOwn(shape, key));

/** Which parts have a field of this name; nothing where so many have it that it says nothing. */
function meantIn(parts: readonly Part[], key: string): string {
  const having = parts.filter((part) => !(part.isList && EVERYWHERE.has(key)) && hasField(part, key));
  const places = [...new Set(having.map(({ at }) => `"${at}.${key}"`))];
  return places.length === 0 || places.length > MOST_PLACES ? '' : `; did you mean ${places.join(' or ')}?`;
}

/** In words, which other kinds of a union have the field. */
function ofOtherKinds(key: string, owner: Schema, value: unknown): string[] {
  const union = unwrap(owner);
  if (!(union instanceof z.ZodDiscriminatedUnion)) return [];
  const meant = branchesOf(union, value);
  const having = union.options.filter(
    (option) =>
      !meant.includes(option) && objectsOf(option, value).some(({ shape }) => Object.hasOwn(shape, key)),
  );
  if (having.length === 0) return [];
  const { discriminator } = union.def;
  const named = (branches: readonly Schema[]): string =>
    branches
      .flatMap((branch) => literalOf(branch, union) ?? [])
      .map((name) => JSON.stringify(name))
      .join(' or ');
  return [`is a field of ${discriminator} ${named(having)}, and this is of ${discriminator} ${named(meant)}`];
}

/** The schemas that what was written at a path was held against; several where a union leaves open which is meant. */
export function schemasAt(schema: Schema, written: unknown, path: Path): Schema[] {
  const [head, ...rest] = path;
  if (head === undefined) return [schema];
  const inner = unwrap(schema);
  if (inner instanceof z.ZodUnion) {
    return branchesOf(inner, written).flatMap((branch) => schemasAt(branch, written, path));
  }
  const below = belowOf(inner, head);
  return below === undefined ? [] : schemasAt(below, inside(written, head), rest);
}

function belowOf(schema: Schema, part: PropertyKey): Schema | undefined {
  if (schema instanceof z.ZodObject) return schema.shape[String(part)] as Schema | undefined;
  if (schema instanceof z.ZodArray) return schema.element;
  if (schema instanceof z.ZodRecord) return schema.valueType;
  return undefined;
}

/** The objects that a value may be. */
export function objectsOf(schema: Schema, value: unknown): z.ZodObject[] {
  const inner = unwrap(schema);
  if (inner instanceof z.ZodUnion) {
    return branchesOf(inner, value).flatMap((branch) => objectsOf(branch, value));
  }
  return inner instanceof z.ZodObject ? [inner] : [];
}

/** The objects that an element of a list may be, of whatever kind. */
function everyObjectOf(schema: Schema): z.ZodObject[] {
  const inner = unwrap(schema);
  if (inner instanceof z.ZodUnion) return inner.options.flatMap(everyObjectOf);
  return inner instanceof z.ZodObject ? [inner] : [];
}

/** Of a union that a field tells apart, the branch that what was written names; else all. */
function branchesOf(union: z.ZodUnion, value: unknown): readonly Schema[] {
  if (!(union instanceof z.ZodDiscriminatedUnion)) return union.options;
  const kind = inside(value, union.def.discriminator);
  const meant = union.options.filter((option) => {
    const field = kindOf(option, union);
    return field !== undefined && z.safeParse(field, kind).success;
  });
  return meant.length > 0 ? meant : union.options;
}

/** The field that tells the branches of a union apart. */
const kindOf = (branch: Schema, { def }: z.ZodDiscriminatedUnion): Schema | undefined => {
  const inner = unwrap(branch);
  return inner instanceof z.ZodObject ? (inner.shape[def.discriminator] as Schema) : undefined;
};

/** The name of a branch. */
function literalOf(branch: Schema, union: z.ZodDiscriminatedUnion): string | undefined {
  const field = kindOf(branch, union);
  const kind = field && unwrap(field);
  return kind instanceof z.ZodLiteral ? String(kind.value) : undefined;
}

function unwrap(schema: Schema): Schema {
  let at = schema;
  while (isAround(at)) at = at.unwrap();
  return at;
}

const isAround = (at: Schema): at is z.ZodDefault | z.ZodPrefault | z.ZodOptional | z.ZodNullable =>
  at instanceof z.ZodDefault ||
  at instanceof z.ZodPrefault ||
  at instanceof z.ZodOptional ||
  at instanceof z.ZodNullable;
