import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseAst } from 'vitest/node';
import { z } from 'zod';
import { ROOT } from './markdown.ts';

// Finds fields of a schema that no code reads. It goes by names, not by types: a read of a field is a member expression
// or a pattern with its name, in a file that also speaks of the section that the field is in.

/** A field of a schema, by the names that lead to it: `['stages', 'plateau', 'action']`. */
export type FieldPath = readonly string[];

/** All fields of a schema, those of every branch of a union among them; each path once. */
export function fieldPaths(schema: z.core.$ZodType): FieldPath[] {
  const paths = new Map<string, FieldPath>();
  const walk = (at: z.core.$ZodType, above: FieldPath): void => {
    if (at instanceof z.ZodObject) {
      for (const [name, field] of Object.entries(at.shape)) {
        const here = [...above, name];
        paths.set(here.join('.'), here);
        walk(field, here);
      }
    } else if (at instanceof z.ZodUnion) for (const option of at.options) walk(option, above);
    else if (at instanceof z.ZodArray) walk(at.element, above);
    else if (at instanceof z.ZodRecord) walk(at.valueType, above);
    else if (
      at instanceof z.ZodDefault ||
      at instanceof z.ZodPrefault ||
      at instanceof z.ZodOptional ||
      at instanceof z.ZodNullable
    ) {
      walk(at.unwrap(), above);
    }
  };
  walk(schema, []);
  return [...paths.values()];
}

/** What a file reads of objects, and what it speaks of. */
export interface Reads {
  fields: ReadonlySet<string>;
  /** All identifiers and the file's path, in lower case. */
  words: string;
}

interface Node {
  type: string;
  name?: string;
  computed?: boolean;
  operator?: string;
  value?: unknown;
  id?: Node | null;
  key?: Node;
  property?: Node;
  properties?: Node[];
  left?: Node;
}

/** `source` is TypeScript. What functions read whose names begin with `check` or `refuse` does not count: they act on nothing. */
export function readsIn(source: string, file = ''): Reads {
  const fields = new Set<string>();
  const words = new Set([file.toLowerCase()]);
  const visit = (node: Node): void => {
    if (node.type === 'FunctionDeclaration' && /^(check|refuse)[A-Z]/u.test(node.id?.name ?? '')) return;
    if (node.type === 'Identifier') words.add(node.name!.toLowerCase());
    if (node.type === 'ObjectPattern') {
      for (const { key, computed } of node.properties!) if (key?.name && !computed) fields.add(key.name);
    }
    if (node.type === 'MemberExpression') {
      const { property, computed } = node;
      if (!computed) fields.add(property!.name!);
      else if (typeof property!.value === 'string') fields.add(property!.value);
    }
    for (const [part, value] of Object.entries(node)) {
      // What is assigned to is not read.
      const written = part === 'left' && node.type === 'AssignmentExpression' && node.operator === '=';
      for (const child of [value].flat() as unknown[]) {
        if (typeof child !== 'object' || child === null || !('type' in child)) continue;
        if (written && (child as Node).type === 'MemberExpression') continue;
        visit(child as Node);
      }
    }
  };
  visit(parseAst(source, { lang: 'ts' }));
  return { fields, words: [...words].join(' ') };
}

/** Of all code that a run executes. */
export function readsOfTheCode(): Reads[] {
  const folders = [
    'core',
    'engine',
    'environments',
    'gateway',
    'activities',
    'workflows',
    'store',
    'spec',
    'cli',
  ];
  return folders.flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => {
        const name = path.join(folder, file);
        return readsIn(readFileSync(path.join(ROOT, name), 'utf8'), name);
      }),
  );
}

/** The fields that no file reads which speaks of their section. */
export function unread(fields: readonly FieldPath[], reads: readonly Reads[]): string[] {
  return fields
    .filter((field) => {
      const section = field.at(-2)?.toLowerCase().replace(/s$/u, '') ?? '';
      return !reads.some(({ fields: read, words }) => read.has(field.at(-1)!) && words.includes(section));
    })
    .map((field) => field.join('.'));
}
