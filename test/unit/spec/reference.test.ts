import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { curriculumJsonSchema } from '../../../spec/json-schema.ts';
import { specReference } from '../../../spec/reference.ts';

/** Paths of all properties in a JSON schema, with what each says of itself. */
function described(schema: unknown, path = ''): { path: string; description: unknown }[] {
  if (typeof schema !== 'object' || schema === null) return [];
  return Object.entries(schema).flatMap(([key, value]: [string, unknown]) => {
    if (key !== 'properties') return described(value, `${path}/${key}`);
    return Object.entries(value as Record<string, { description?: unknown }>).flatMap(([name, field]) => [
      { path: `${path}/${name}`, description: field.description },
      ...described(field, `${path}/${name}`),
    ]);
  });
}

test('every field of the spec has a description', () => {
  const fields = described(JSON.parse(curriculumJsonSchema()));
  expect(fields.length).toBeGreaterThan(400);
  const silent = fields.filter(({ description }) => typeof description !== 'string' || description === '');
  expect(silent.map(({ path }) => path)).toEqual([]);
});

test('docs/spec.md is made from the schema; `npm run schema` writes it', () => {
  const file = new URL('../../../docs/spec.md', import.meta.url);
  expect(readFileSync(file, 'utf8')).toBe(specReference());
});

test('the reference has each section, and each field of each kind', () => {
  const reference = specReference();
  const shown = new Set([
    ...Array.from(reference.matchAll(/^- `(?:\S*\.)?(\S+)` \(/gmu), ([, name]) => name!),
    ...Array.from(reference.matchAll(/^## (\S+)$/gmu), ([, name]) => name!),
  ]);
  const names = described(JSON.parse(curriculumJsonSchema())).map(({ path }) => path.split('/').at(-1)!);
  expect(names.filter((name) => !shown.has(name))).toEqual([]);
});
