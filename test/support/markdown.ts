import { readFileSync } from 'node:fs';
import path from 'node:path';

export const ROOT = path.resolve(import.meta.dirname, '..', '..');

export interface CodeBlock {
  /** After the back-ticks, e.g. `ts` of "```ts file=examples/tool.ts". */
  language: string;
  /** The rest of that line. */
  info: string;
  /** What an HTML comment `<!-- test: … -->` before the block says. */
  tag: string | undefined;
  text: string;
}

/** The fenced code blocks of a page of this repository, in order. */
export function codeBlocks(file: string): CodeBlock[] {
  const page = readFileSync(path.join(ROOT, file), 'utf8');
  const fenced =
    /(?:<!-- test: (?<tag>.+?) -->\n\n?)?^```(?<language>\w*) ?(?<info>.*)\n(?<text>[^]*?)^```$/gm;
  return [...page.matchAll(fenced)].map(({ groups }) => ({
    language: groups!['language']!,
    info: groups!['info']!,
    tag: groups!['tag'],
    text: groups!['text']!,
  }));
}

/** Throws RangeError unless exactly one block of the page has the tag. */
export function taggedBlock(file: string, tag: string): string {
  const [block, ...others] = codeBlocks(file).filter((candidate) => candidate.tag === tag);
  if (block === undefined || others.length > 0)
    throw new RangeError(`${file} needs one block "test: ${tag}"`);
  return block.text;
}
