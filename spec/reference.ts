import { z } from 'zod';
import { curriculumSchema } from '../core/schema/curriculum.ts';
import { OTHER_NAMES } from './other-names.ts';

interface JsonSchema {
  type?: string;
  description?: string;
  default?: unknown;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  additionalProperties?: JsonSchema | boolean;
  oneOf?: JsonSchema[];
  anyOf?: JsonSchema[];
  enum?: unknown[];
  const?: unknown;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
}

const HEAD = `# The curriculum spec

<!-- Made from the schema by \`npm run schema\`: change the descriptions there. -->

A run is one JSON file. This page lists its fields with type, allowed values and default. A field without a default is either required or optional, and says which. A field that is not listed is refused. [curriculum.schema.json](../examples/curriculum.schema.json) is the same for editors.
`;

/** The reference of the spec, made from its schema; `docs/spec.md` holds it. */
export function specReference(): string {
  const schema = z.toJSONSchema(curriculumSchema, { io: 'input', target: 'draft-2020-12' }) as JsonSchema;
  const fields = Object.entries(schema.properties!);
  const isSection = ([, one]: [string, JsonSchema]): boolean => below(one) !== undefined;
  const simple = fields.filter((one) => !isSection(one));
  const sections = fields.filter(isSection);
  return [
    HEAD,
    '## The top',
    list(simple.map(([name, one]) => item(name, one, schema.required))),
    ...sections.flatMap(([name, one]) => [
      `## ${name}`,
      `${one.description!} ${schema.required?.includes(name) ? 'Required' : 'Optional'}.`,
      ...fieldsOf(name, one),
    ]),
    '## Names of other trainers',
    'Names that TRL, verl and OpenRLHF have for a field are read, where the field means the same, and so is each name in snake_case. Gradus says then what it reads them as. Two names of one field are refused. `epsilonHigh` and `klLossCoef` are read for methods that clip ratios on both sides only.',
    list(Object.entries(OTHER_NAMES).map(([other, own]) => `- \`${other}\` is read as \`${own}\`.`)),
  ]
    .join('\n\n')
    .replace(/\n{3,}/gu, '\n\n')
    .concat('\n');
}

const list = (items: readonly string[]): string => items.join('\n');

/** What a value is made of: the object or the kinds of it, or of each of a list or record; undefined for a plain value. */
function below(schema: JsonSchema): { of: JsonSchema; suffix: string } | undefined {
  if (schema.properties || schema.oneOf) return { of: schema, suffix: '' };
  if (schema.items && below(schema.items)) return { of: schema.items, suffix: '[]' };
  const { additionalProperties: each } = schema;
  if (typeof each === 'object' && below(each)) return { of: each, suffix: '.NAME' };
  return undefined;
}

/** The list of an object's fields, those of objects within it by their path, and a part of its own for each kind. */
function fieldsOf(path: string, schema: JsonSchema): string[] {
  const { of, suffix } = below(schema)!;
  const at = `${path}${suffix}`;
  if (of.oneOf) {
    return of.oneOf.flatMap((kind) => [
      `### ${at}: ${String(kind.properties!['kind']!.const)}`,
      [kind.properties!['kind']!.description, kind.description].filter(Boolean).join(' '),
      ...fieldsOf(at, kind),
    ]);
  }
  const items: string[] = [];
  const parts: string[] = [];
  const collect = (object: JsonSchema, prefix: string): void => {
    for (const [name, one] of Object.entries(object.properties!)) {
      const inner = below(one);
      items.push(item(`${prefix}${name}`, one, object.required, name));
      if (inner?.of.oneOf) parts.push(...fieldsOf(`${at}.${prefix}${name}`, one));
      else if (inner) collect(inner.of, `${prefix}${name}${inner.suffix}.`);
    }
  };
  collect(of, '');
  return [list(items), ...parts];
}

function item(shown: string, schema: JsonSchema, required: readonly string[] = [], name = shown): string {
  const facts = [typeOf(schema), need(schema, required.includes(name))].join('; ');
  return `- \`${shown}\` (${facts}): ${schema.description ?? ''}`;
}

const need = (schema: JsonSchema, required: boolean): string => {
  if (schema.default !== undefined && !isEmpty(schema.default))
    return `default \`${JSON.stringify(schema.default)}\``;
  return required ? 'required' : 'optional';
};

const isEmpty = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;

function typeOf(schema: JsonSchema): string {
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum) return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(' or ');
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(' or ');
  if (schema.oneOf) return 'object of one of the kinds below';
  if (schema.items) return `list of: ${typeOf(schema.items)}`;
  if (schema.type === 'integer' || schema.type === 'number') return numberOf(schema);
  if (schema.type === 'object' && typeof schema.additionalProperties === 'object') return 'object by name';
  return schema.type ?? 'any value';
}

function numberOf({ type, minimum, maximum, exclusiveMinimum, exclusiveMaximum }: JsonSchema): string {
  const what = type === 'integer' ? 'whole number' : 'number';
  const bounds = [
    minimum !== undefined && minimum > Number.MIN_SAFE_INTEGER && `at least ${minimum}`,
    exclusiveMinimum !== undefined && `above ${exclusiveMinimum}`,
    maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER && `at most ${maximum}`,
    exclusiveMaximum !== undefined && `below ${exclusiveMaximum}`,
  ].filter((bound) => bound !== false);
  return [what, ...bounds].join(', ');
}
