import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseAst } from 'vitest/node';
import { ROOT } from './markdown.ts';

/** A text that the product shows to a person. */
export interface WrittenText {
  /** Of the file, from the root of the repository, with the line. */
  at: string;
  text: string;
}

type Node = Record<string, unknown> & { type: string; start: number };

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';

/** The children of a node, in the order of the source. */
const childrenOf = (node: Node): Node[] => Object.values(node).flat().filter(isNode);

/** What a string, a template or a sum of them says, with an X for what is put in; null for anything else. */
function textOf(node: Node): string | null {
  if (node.type === 'Literal') return typeof node['value'] === 'string' ? node['value'] : null;
  if (node.type === 'TemplateLiteral') {
    const parts = node['quasis'] as { value: { cooked: string } }[];
    return parts.map(({ value }) => value.cooked).join('X');
  }
  if (node.type !== 'BinaryExpression' || node['operator'] !== '+') return null;
  const [left, right] = [textOf(node['left'] as Node), textOf(node['right'] as Node)];
  return left === null && right === null ? null : `${left ?? 'X'}${right ?? 'X'}`;
}

/** Descriptions of the spec's fields, of commands and of their flags; what is refused, said or printed. */
const METHODS = new Set(['describe', 'description', 'option', 'argument', 'summary']);
const FUNCTIONS = new Set(['fail', 'fault', 'print', 'problem', 'refuse', 'say', 'wrong']);
const PROPERTIES = new Set(['description', 'message', 'remedy']);
const nameOf = (node: unknown): string => String((node as Node)['name']);
function isShown(node: Node): boolean {
  if (node.type === 'Property') return PROPERTIES.has(nameOf(node['key']));
  if (node.type !== 'CallExpression') return false;
  const callee = node['callee'] as Node;
  return callee.type === 'MemberExpression'
    ? METHODS.has(nameOf(callee['property']))
    : FUNCTIONS.has(nameOf(callee));
}

/** Errors; what is refused to a policy is for the policy to read, and part of its training. */
const isError = (node: Node): boolean =>
  node.type === 'NewExpression' && nameOf(node['callee']).endsWith('Error');

/** What tables, charts and cards are headed by. */
const ATTRIBUTES = new Set(['caption', 'columns', 'label', 'title']);
const isShownAttribute = (node: Node): boolean =>
  node.type === 'JSXAttribute' && isNode(node['value']) && ATTRIBUTES.has(nameOf(node['name']));

/** Every string below a node, each as a whole: the parts of a sum are one text. */
function* stringsIn(node: Node): Generator<[Node, string]> {
  const text = textOf(node);
  if (text !== null) yield [node, text];
  else for (const child of childrenOf(node)) yield* stringsIn(child);
}

function* textsIn(node: Node): Generator<[Node, string]> {
  if (isError(node) || isShown(node)) {
    for (const child of childrenOf(node)) yield* stringsIn(child);
  } else if (node.type === 'JSXText') yield [node, String(node['value'])];
  else if (isShownAttribute(node)) yield* stringsIn(node['value'] as Node);
  for (const child of childrenOf(node)) yield* textsIn(child);
}

/** Messages of errors, descriptions, what is refused or printed, and texts of pages, of every source below a folder. */
export function writtenTexts(folder: string): WrittenText[] {
  const files = execFileSync('git', ['ls-files', `${folder}/*.ts`, `${folder}/*.tsx`], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  return files
    .split('\n')
    .filter((file) => file !== '')
    .flatMap((file) => {
      const source = readFileSync(path.join(ROOT, file), 'utf8');
      const program = parseAst(source, { lang: file.endsWith('x') ? 'tsx' : 'ts' });
      return [...textsIn(program as unknown as Node)].map(([{ start }, text]) => ({
        at: `${file}:${source.slice(0, start).split('\n').length}`,
        text,
      }));
    });
}
